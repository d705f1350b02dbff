//! 3.12: on a host that lacks a layer, a run is refused, or safe with a report that names the layer.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{
    Answer, DegradedHost, Fixture, degraded_hosts, is_refusal, kill_and_reap, need_root, ordinary_user,
};

/// Checks that must hold for every run: no canary, no host process, no network, no privilege.
const SAFETY_CHECKS: &str = r#"
check() { echo "$1 $2"; }
check secret $(python3 scripts/read_file.py $CANARY)
check state $(python3 scripts/read_file.py $STATE)
check system $(python3 scripts/create_file.py /usr)
check skill $(python3 scripts/create_file.py /workspace/skills)
check host_pid $(python3 scripts/signal_process.py kill $HOST_PID 0)
check environ $(cat /proc/*/environ 2>/dev/null | grep -c CANARY-)
check process $(python3 scripts/find_process.py cmdline $WORD)
check network $(python3 scripts/socket_family.py 2 stream 0)
check namespace $(python3 scripts/raw_call.py unshare_user)
check keys $(python3 scripts/raw_call.py keyctl)
check trace $(python3 scripts/trace.py attach init)
check capabilities $(python3 scripts/capabilities.py held)
check identity $(python3 scripts/become.py setuid)
check descriptors $(python3 scripts/descriptors.py)
"#;

/// Runs the safety checks on a degraded host.
fn run_safety_checks(fixture: &Fixture, host: &DegradedHost, profile: &str) -> Answer {
    let own = std::process::id().to_string();
    let request = json!({
        "command": SAFETY_CHECKS, "profile": profile, "timeout": 100,
        "env": {"CANARY": fixture.path_str("host/canary.txt"), "STATE": fixture.path_str("state"), "HOST_PID": own, "WORD": "skillbox-it-no-such-word"},
    });
    fixture.request(request).with_launcher(&host.launcher).run()
}

fn collect_violations(answer: &Answer, failures: &mut Vec<String>) {
    let lines: Vec<&str> = answer.stdout().lines().collect();
    if lines.len() != 14 {
        failures.push(format!("{} of 14 results: {}", lines.len(), answer.describe()));
    }
    for line in lines {
        let (check, word) = line.split_once(' ').unwrap_or((line, ""));
        let is_safe = match check {
            "environ" => word == "0",
            "process" => word == "unseen",
            // Without /proc the probe cannot find out.
            "capabilities" => word == "none" || word.is_empty(),
            "descriptors" => word.split(',').count() == 3,
            _ => is_refusal(word),
        };
        if !is_safe {
            failures.push(format!("{check} is {word:?}: {}", answer.describe()));
        }
    }
}

/// Lists what is wrong on a degraded host. Right is a refusal with cause and hint, or a safe run whose report names
/// the missing layers.
fn find_failures(host: &DegradedHost, fixture: &Fixture) -> Vec<String> {
    let mut failures = Vec::new();
    let doctor = fixture
        .command(&["doctor", "--json"])
        .with_launcher(&host.launcher)
        .run();
    for profile in ["default", "strict"] {
        let answer = run_safety_checks(fixture, host, profile);
        if answer.is_refused() {
            if (answer.expect_refusal().0, answer.code) != ("isolation_unavailable", Some(125)) {
                failures.push(format!("{profile}: refused for another reason: {}", answer.describe()));
            }
            if answer["error"]["hint"].as_str().is_none_or(str::is_empty) {
                failures.push(format!("{profile}: refused without a hint: {}", answer.describe()));
            }
            if profile == "default" && host.default_runs {
                failures.push(format!(
                    "`default` requires nothing that is missing: {}",
                    answer.describe()
                ));
            }
            continue;
        }
        let answer = answer.expect_report();
        let missing = answer.missing_layers();
        for layer in host.missing_layers.iter().filter(|layer| !missing.contains(layer)) {
            failures.push(format!(
                "{profile}: {layer} is missing and not named; named are {missing:?}"
            ));
        }
        if profile == "strict" && !missing.is_empty() {
            failures.push(format!("`strict` runs without {missing:?}"));
        }
        collect_violations(&answer, &mut failures);
        // The run has the tier that doctor reports.
        if doctor["tier"] != answer["enforcement"]["tier"] {
            let tier = &answer["enforcement"]["tier"];
            failures.push(format!(
                "{profile} ran at {tier}, doctor reports: {}",
                doctor.describe()
            ));
        }
    }
    failures
        .iter()
        .map(|failure| format!("{}: {failure}", host.name))
        .collect()
}

fn check_hosts(names: &[&str]) {
    if !need_root() {
        return;
    }
    let mut failures = Vec::new();
    for name in names {
        let fixture = Fixture::new();
        let host = degraded_hosts(&fixture)
            .into_iter()
            .find(|host| host.name == *name)
            .unwrap_or_else(|| panic!("{name} is not in the list of hosts"));
        if let Some(id) = host.user {
            fixture.chown_to(id);
        }
        failures.extend(find_failures(&host, &fixture));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn h137_a_complete_host_is_safe_and_reports_every_layer() {
    let fixture = Fixture::new();
    if !need_root() {
        return;
    }
    let host = DegradedHost {
        name: "this host",
        launcher: vec![],
        user: None,
        missing_layers: &[],
        default_runs: true,
    };
    let failures = find_failures(&host, &fixture);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The safety checks can fail: outside, most of them do.
    let outside = fixture.control_shell(&format!(
        "cd {}; export CANARY={} STATE={} HOST_PID=$$ WORD=x; {SAFETY_CHECKS}",
        fixture.path_str("skills/probe"),
        fixture.path_str("host/canary.txt"),
        fixture.path_str("state")
    ));
    let failed = outside
        .lines()
        .filter(|line| line.ends_with("allowed") || line.ends_with("reached"))
        .count();
    assert!(failed >= 8, "{outside}");
}

#[test]
fn h137_an_ordinary_user_runs_with_the_available_layers() {
    check_hosts(&["an ordinary user", "root of a nested user namespace"]);
}

#[test]
fn h137_without_user_namespaces_a_run_is_refused_or_reports_the_gap() {
    check_hosts(&[
        "user namespaces switched off",
        "namespaces refused by a filter",
        "namespaces refused by a filter, as root",
    ]);
}

#[test]
fn h137_without_control_groups_the_report_names_the_gap() {
    check_hosts(&["no control groups", "read-only control groups"]);
}

#[test]
fn h137_without_landlock_or_seccomp_the_gap_is_named_or_the_run_refused() {
    check_hosts(&["no Landlock", "no seccomp"]);
}

#[test]
fn h137_without_newer_system_calls_the_outcome_is_the_same() {
    check_hosts(&["no openat2", "an old mount interface", "no clone3, no pidfd"]);
}

/// Without mount_setattr (Linux 5.12) each mount is made read-only by a remount. The mount table has to be the same.
#[test]
fn h137_on_linux_5_10_the_mounts_are_the_same() {
    check_hosts(&["Linux 5.10", "a user of Linux 5.10"]);
    if !need_root() {
        return;
    }
    for name in ["Linux 5.10", "a user of Linux 5.10"] {
        let fixture = Fixture::new();
        let host = degraded_hosts(&fixture)
            .into_iter()
            .find(|host| host.name == name)
            .unwrap();
        if let Some(id) = host.user {
            fixture.chown_to(id);
        }
        let (_, as_user) = ordinary_user();
        let complete = if host.user.is_some() { as_user } else { Vec::new() };
        let mounts = |launcher: &[String]| {
            let file = fixture.path_str("host/canary.txt");
            let request = json!({
                "command": "cut -d' ' -f5,6 /proc/self/mountinfo | sort",
                "inputs": [{"from": format!("host://{file}"), "to": "work/linked.txt", "mode": "link"}],
            });
            let answer = fixture
                .request(request)
                .allow_host_inputs()
                .with_launcher(launcher)
                .run()
                .expect_report();
            answer.stdout().to_owned()
        };
        let (new, old) = (mounts(&complete), mounts(&host.launcher));
        assert!(
            new.lines().any(|line| line.starts_with("/usr ro,nosuid,nodev")),
            "{new}"
        );
        assert!(
            new.lines()
                .any(|line| line.starts_with("/workspace/work/linked.txt ro")),
            "{new}"
        );
        // Mounts are idmapped from Linux 5.12 on; before, only files that everybody may read are readable.
        assert_eq!(new.replace(",idmapped", ""), old, "{name}");
    }
}

#[test]
fn h137_without_mounts_or_proc_nothing_of_the_host_is_shown() {
    check_hosts(&["a masked /proc", "no mounting at all"]);
}

#[test]
fn h138_a_missing_or_killed_helper_is_reported() {
    let fixture = Fixture::new();
    if !need_root() {
        return;
    }
    // The program cannot be executed again, as when its file was replaced or its directory unmounted.
    let copy = fixture.path("removed/skillbox");
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::copy(fixture.binary(), &copy).unwrap();
    let vanish = format!(
        "exec 8<{0} && rm {0} && shift && exec /proc/self/fd/8 \"$@\"",
        copy.display()
    );
    let launcher = ["bash", "-c", &vanish, "bash"].map(str::to_owned);
    let answer = fixture
        .request(json!({"command": "echo fine"}))
        .with_launcher(&launcher)
        .run();
    if answer.is_refused() {
        let (code, _) = answer.expect_refusal();
        assert!(
            matches!(code, "isolation_unavailable" | "executor_unavailable" | "internal"),
            "{}",
            answer.describe()
        );
    } else {
        assert_eq!(answer.expect_report().stdout(), "fine\n");
    }
    // The process between skillbox and the script is killed during a run.
    let token = format!("{}-helper", fixture.canary());
    let answer = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            fixture
                .request(json!({"argv": ["bash", "-c", "sleep 300; true", token], "timeout": 300}))
                .run()
        });
        let between = fixture.wait_for("the helper", || parent_of_script(&fixture, &token));
        kill_process(Pid::from_raw(between).unwrap(), Signal::KILL).unwrap();
        run.join().unwrap()
    });
    if answer.is_refused() {
        assert_eq!(answer.code, Some(125), "{}", answer.describe());
        answer.expect_refusal();
    } else {
        assert_ne!(
            answer.code,
            Some(0),
            "a killed run is not a success: {}",
            answer.describe()
        );
        assert_ne!(answer["exit_code"], 0);
    }
    fixture.wait_for_no_process_with(&token);
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
    // The spawner is killed once the script runs.
    let token = format!("{}-spawner", fixture.canary());
    let request = json!({"argv": ["bash", "-c", "sleep 300; true", token], "timeout": 300});
    let mut child = fixture.request(request).spawn();
    fixture.wait_for("the script", || parent_of_script(&fixture, &token));
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let spawner = children.split_whitespace().next().expect("a spawner").parse().unwrap();
    kill_process(Pid::from_raw(spawner).unwrap(), Signal::KILL).unwrap();
    let status = fixture.wait_for("skillbox's end", || child.try_wait().unwrap());
    assert!(!status.success(), "a run without its spawner is not a success");
    kill_and_reap(&mut child);
    fixture.wait_for_no_process_with(&token);
}

/// The parent of the script on the host: the init process of the sandbox, or the process above it.
fn parent_of_script(fixture: &Fixture, token: &str) -> Option<i32> {
    let script = fixture
        .host_pids_with(token)
        .into_iter()
        .find(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "bash"))?;
    let status = fs::read_to_string(format!("/proc/{script}/status")).ok()?;
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()?;
    (parent > 1).then_some(parent)
}

#[test]
fn h139_a_limit_that_cannot_be_enforced_is_refused_or_named() {
    if !need_root() {
        return;
    }
    let fixture = Fixture::new();
    fixture.add_profile_yaml(
        "firm",
        "extends: default\nlayers:\n  memory: required\nlimits:\n  memory: 96 MiB\n  workspace: 16 MiB\n",
    );
    fixture.add_profile("lean", &[("memory", "96 MiB"), ("workspace", "16 MiB")]);
    let (id, user) = ordinary_user();
    fixture.chown_to(id);
    let run = |profile: &str| {
        fixture
            .request(json!({"argv": ["python3", "-c", "print('ran')"], "profile": profile}))
            .with_launcher(&user)
            .run()
    };
    let firm = run("firm");
    let lean = run("lean").expect_report();
    if lean.layer_status("memory") == "enforced" {
        // A control group is delegated to this user: no layer is missing.
        assert_eq!(firm.expect_report().stdout(), "ran\n");
        return;
    }
    assert_eq!(
        (firm.expect_refusal().0, firm.code),
        ("isolation_unavailable", Some(125)),
        "{}",
        firm.describe()
    );
    assert!(
        firm["error"]["message"].as_str().unwrap().contains("memory"),
        "the missing layer is named: {}",
        firm.describe()
    );
    assert!(!firm.mentions("ran\\n"));
    assert!(lean.missing_layers().contains(&"memory"), "{}", lean.describe());
    // The same profile works where the limit can be enforced.
    let root = Fixture::new();
    root.add_profile_yaml(
        "firm",
        "extends: default\nlayers:\n  memory: required\nlimits:\n  memory: 96 MiB\n  workspace: 16 MiB\n",
    );
    assert_eq!(
        root.request(json!({"command": "echo ran", "profile": "firm"}))
            .run()
            .expect_report()
            .layer_status("memory"),
        "enforced"
    );
}

#[test]
fn h140_an_unavailable_executor_is_never_replaced() {
    let fixture = Fixture::new();
    let nowhere = format!("unix://{}", fixture.path_str("scratch/no-docker.sock"));
    let answer = fixture
        .request(json!({"command": "echo it ran", "executor": "docker"}))
        .env("DOCKER_HOST", nowhere)
        .run();
    let (code, _) = answer.expect_refusal();
    assert_eq!(
        (code, answer.code),
        ("executor_unavailable", Some(125)),
        "{}",
        answer.describe()
    );
    assert!(!answer.mentions("it ran"));
    let invalid = fixture
        .request(json!({"command": "echo it ran", "executor": "remote"}))
        .run();
    assert_eq!(invalid.expect_refusal(), ("invalid_request", Some("executor")));
    let local = fixture
        .request(json!({"command": "echo it ran", "executor": "local"}))
        .run()
        .expect_report();
    assert_eq!(
        (&local["executor"], local.stdout()),
        (&Value::from("local"), "it ran\n")
    );
}
