//! 3.12: hosts that lack something. Safe, refused, or said; never silent.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::lab::{Answer, Degraded, Scene, degradations, is_refusal, need_root, ordinary_user, reap};

/// What must hold wherever a run takes place at all: no canary, no host process, no network, no privilege.
const SAFE: &str = r#"
say() { echo "$1 $2"; }
say secret $(python3 scripts/read_file.py $CANARY)
say state $(python3 scripts/read_file.py $STATE)
say system $(python3 scripts/create_file.py /usr)
say skill $(python3 scripts/create_file.py /workspace/skills/probe)
say host_pid $(python3 scripts/signal_process.py kill $HOST_PID 0)
say environ $(cat /proc/*/environ 2>/dev/null | grep -c CANARY-)
say process $(python3 scripts/find_process.py cmdline $WORD)
say network $(python3 scripts/socket_family.py 2 stream 0)
say namespace $(python3 scripts/raw_call.py unshare_user)
say keys $(python3 scripts/raw_call.py keyctl)
say trace $(python3 scripts/trace.py attach init)
say capabilities $(python3 scripts/capabilities.py held)
say identity $(python3 scripts/become.py setuid)
say descriptors $(python3 scripts/descriptors.py)
"#;

/// Asks for the safe list on a degraded host.
fn ask_degraded(scene: &Scene, host: &Degraded, profile: &str) -> Answer {
    let own = std::process::id().to_string();
    let request = json!({
        "command": SAFE, "profile": profile, "timeout": 40,
        "env": {"CANARY": scene.text("host/canary.txt"), "STATE": scene.text("state"), "HOST_PID": own, "WORD": "skillbox-it-no-such-word"},
    });
    scene.ask(request).behind(&host.launcher).go()
}

fn complain_of_unsafe(answer: &Answer, complaints: &mut Vec<String>) {
    let lines: Vec<&str> = answer.stdout().lines().collect();
    if lines.len() != 14 {
        complaints.push(format!("{} of 14 words came: {}", lines.len(), answer.told()));
    }
    for line in lines {
        let (what, word) = line.split_once(' ').unwrap_or((line, ""));
        let safe = match what {
            "environ" => word == "0",
            "process" => word == "unseen",
            // Without /proc nobody can tell.
            "capabilities" => word == "none" || word.is_empty(),
            "descriptors" => word.split(',').count() == 3,
            _ => is_refusal(word),
        };
        if !safe {
            complaints.push(format!("{what} is {word:?}: {}", answer.told()));
        }
    }
}

/// On each degraded host: a refusal with cause and remedy, or a safe run whose report names what is missing.
fn complaints_about(host: &Degraded, scene: &Scene) -> Vec<String> {
    let mut complaints = Vec::new();
    let doctor = scene.tell(&["doctor", "--json"]).behind(&host.launcher).go();
    for profile in ["default", "strict"] {
        let answer = ask_degraded(scene, host, profile);
        if answer.json().get("error").is_some() {
            if (answer.refused().0, answer.code) != ("isolation_unavailable", Some(125)) {
                complaints.push(format!("{profile}: refused for another reason: {}", answer.told()));
            }
            if answer["error"]["hint"].as_str().is_none_or(str::is_empty) {
                complaints.push(format!("{profile}: refused without a hint: {}", answer.told()));
            }
            if profile == "default" && host.default_runs {
                complaints.push(format!("`default` requires nothing that is missing: {}", answer.told()));
            }
            continue;
        }
        let answer = answer.reported();
        let gaps = answer.gaps();
        for layer in host.missing.iter().filter(|layer| !gaps.contains(layer)) {
            complaints.push(format!(
                "{profile}: {layer} is missing and not named; gaps are {gaps:?}"
            ));
        }
        if profile == "strict" && !gaps.is_empty() {
            complaints.push(format!("`strict` runs with gaps {gaps:?}"));
        }
        complain_of_unsafe(&answer, &mut complaints);
        // What doctor foretells is what happens.
        if doctor["tier"] != answer["enforcement"]["tier"] {
            let tier = &answer["enforcement"]["tier"];
            complaints.push(format!("{profile} ran at {tier}, doctor says: {}", doctor.told()));
        }
    }
    complaints
        .iter()
        .map(|complaint| format!("{}: {complaint}", host.name))
        .collect()
}

fn each_degradation(wanted: &[&str]) {
    if !need_root() {
        return;
    }
    let mut complaints = Vec::new();
    for name in wanted {
        let scene = Scene::new();
        let host = degradations(&scene)
            .into_iter()
            .find(|host| host.name == *name)
            .unwrap_or_else(|| panic!("{name} is no known host"));
        if let Some(id) = host.user {
            scene.give_to(id);
        }
        complaints.extend(complaints_about(&host, &scene));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn h137_a_whole_host_is_safe_and_says_so() {
    let scene = Scene::new();
    if !need_root() {
        return;
    }
    let host = Degraded {
        name: "this host",
        launcher: vec![],
        user: None,
        missing: &[],
        default_runs: true,
    };
    let complaints = complaints_about(&host, &scene);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    // The safe list can fail: outside, most of it is open.
    let outside = scene.control_sh(&format!(
        "cd {}; export CANARY={} STATE={} HOST_PID=$$ WORD=x; {SAFE}",
        scene.text("skills/probe"),
        scene.text("host/canary.txt"),
        scene.text("state")
    ));
    let open = outside
        .lines()
        .filter(|line| line.ends_with("allowed") || line.ends_with("reached"))
        .count();
    assert!(open >= 8, "{outside}");
}

#[test]
fn h137_an_ordinary_user_runs_with_what_there_is() {
    each_degradation(&["an ordinary user", "root of a nested user namespace"]);
}

#[test]
fn h137_without_user_namespaces_nothing_runs_silently() {
    each_degradation(&[
        "user namespaces switched off",
        "namespaces refused by a filter",
        "namespaces refused by a filter, as root",
    ]);
}

#[test]
fn h137_without_control_groups_the_gap_is_named() {
    each_degradation(&["no control groups", "read-only control groups"]);
}

#[test]
fn h137_without_landlock_or_seccomp_the_gap_is_named_or_the_run_refused() {
    each_degradation(&["no Landlock", "no seccomp"]);
}

#[test]
fn h137_without_newer_calls_the_outcome_is_the_same() {
    each_degradation(&["no openat2", "an old mount interface", "no clone3, no pidfd"]);
}

/// Without mount_setattr each mount is made read-only by a remount: the table of mounts has to be the same.
#[test]
fn h137_on_linux_5_10_the_mounts_are_the_same() {
    each_degradation(&["Linux 5.10", "a user of Linux 5.10"]);
    if !need_root() {
        return;
    }
    for name in ["Linux 5.10", "a user of Linux 5.10"] {
        let scene = Scene::new();
        let host = degradations(&scene).into_iter().find(|host| host.name == name).unwrap();
        if let Some(id) = host.user {
            scene.give_to(id);
        }
        let (_, as_user) = ordinary_user();
        let whole = if host.user.is_some() { as_user } else { Vec::new() };
        let mounts = |launcher: &[String]| {
            let file = scene.text("host/canary.txt");
            let request = json!({
                "command": "cut -d' ' -f5,6 /proc/self/mountinfo | sort",
                "inputs": [{"from": format!("host://{file}"), "to": "work/linked.txt", "mode": "link"}],
            });
            let answer = scene.ask(request).host_allowed().behind(launcher).go().reported();
            answer.stdout().to_owned()
        };
        let (new, old) = (mounts(&whole), mounts(&host.launcher));
        assert!(
            new.lines().any(|line| line.starts_with("/usr ro,nosuid,nodev")),
            "{new}"
        );
        assert!(
            new.lines()
                .any(|line| line.starts_with("/workspace/work/linked.txt ro")),
            "{new}"
        );
        // Owners are shown as someone else from Linux 5.12 on, and what everybody may read can be read before.
        assert_eq!(new.replace(",idmapped", ""), old, "{name}");
    }
}

#[test]
fn h137_without_mounts_or_proc_nothing_of_the_host_is_shown() {
    each_degradation(&["a masked /proc", "no mounting at all"]);
}

#[test]
fn h138_a_missing_or_killed_helper_is_said() {
    let scene = Scene::new();
    if !need_root() {
        return;
    }
    // The program itself cannot be executed again: as when its file was replaced or its directory unmounted.
    let copy = scene.path("gone/skillbox");
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::copy(scene.binary(), &copy).unwrap();
    let vanish = format!(
        "exec 8<{0} && rm {0} && shift && exec /proc/self/fd/8 \"$@\"",
        copy.display()
    );
    let launcher = ["bash", "-c", &vanish, "bash"].map(str::to_owned);
    let answer = scene.ask(json!({"command": "echo fine"})).behind(&launcher).go();
    if answer.json().get("error").is_some() {
        let (code, _) = answer.refused();
        assert!(
            matches!(code, "isolation_unavailable" | "executor_unavailable" | "internal"),
            "{}",
            answer.told()
        );
    } else {
        assert_eq!(answer.reported().stdout(), "fine\n");
    }
    // Whatever stands between skillbox and the script is killed in the middle of a run.
    let token = format!("{}-helper", scene.canary());
    let answer = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            scene
                .ask(json!({"argv": ["bash", "-c", "sleep 20; true", token], "timeout": 30}))
                .within(Duration::from_secs(10))
                .go()
        });
        let between = scene.wait_for("the helper", Duration::from_secs(10), || helper_above(&scene, &token));
        kill_process(Pid::from_raw(between).unwrap(), Signal::KILL).unwrap();
        run.join().unwrap()
    });
    if answer.json().get("error").is_some() {
        assert_eq!(answer.code, Some(125), "{}", answer.told());
        answer.refused();
    } else {
        assert_ne!(answer.code, Some(0), "a killed run is no success: {}", answer.told());
        assert_ne!(answer["exit_code"], 0);
    }
    scene.wait_for("the script's end", Duration::from_secs(2), || {
        scene.host_pids_with(&token).is_empty().then_some(())
    });
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
    // The spawner itself, once the script runs.
    let token = format!("{}-spawner", scene.canary());
    let request = json!({"argv": ["bash", "-c", "sleep 20; true", token], "timeout": 30});
    let mut child = scene.ask(request).begin();
    scene.wait_for("the script", Duration::from_secs(10), || helper_above(&scene, &token));
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let spawner = children.split_whitespace().next().expect("a spawner").parse().unwrap();
    kill_process(Pid::from_raw(spawner).unwrap(), Signal::KILL).unwrap();
    let status = scene.wait_for("skillbox's end", Duration::from_secs(3), || child.try_wait().unwrap());
    assert!(!status.success(), "a run without its spawner is no success");
    reap(&mut child);
    scene.wait_for("the script's end", Duration::from_secs(2), || {
        scene.host_pids_with(&token).is_empty().then_some(())
    });
}

/// The parent, on the host, of the script's process: our reaper, or whatever stands above it.
fn helper_above(scene: &Scene, token: &str) -> Option<i32> {
    let script = scene
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
    let scene = Scene::new();
    scene.profile_text(
        "firm",
        "extends: default\nlayers:\n  memory: required\nlimits:\n  memory: 96 MiB\n  workspace: 16 MiB\n",
    );
    scene.profile("lean", &[("memory", "96 MiB"), ("workspace", "16 MiB")]);
    let (id, user) = ordinary_user();
    scene.give_to(id);
    let ask = |profile: &str| {
        scene
            .ask(json!({"argv": ["python3", "-c", "print('ran')"], "profile": profile}))
            .behind(&user)
            .go()
    };
    let firm = ask("firm");
    let lean = ask("lean").reported();
    if lean.layer("memory") == "enforced" {
        // A delegated control group: nothing is missing for this user.
        assert_eq!(firm.reported().stdout(), "ran\n");
        return;
    }
    assert_eq!(
        (firm.refused().0, firm.code),
        ("isolation_unavailable", Some(125)),
        "{}",
        firm.told()
    );
    assert!(
        firm["error"]["message"].as_str().unwrap().contains("memory"),
        "the missing layer is named: {}",
        firm.told()
    );
    assert!(!firm.mentions("ran\\n"));
    assert!(lean.gaps().contains(&"memory"), "{}", lean.told());
    // The same profile is fine where the limit can be had.
    let root = Scene::new();
    root.profile_text(
        "firm",
        "extends: default\nlayers:\n  memory: required\nlimits:\n  memory: 96 MiB\n  workspace: 16 MiB\n",
    );
    assert_eq!(
        root.ask(json!({"command": "echo ran", "profile": "firm"}))
            .go()
            .reported()
            .layer("memory"),
        "enforced"
    );
}

#[test]
fn h140_an_executor_that_is_not_there_is_never_replaced() {
    let scene = Scene::new();
    let nowhere = format!("unix://{}", scene.text("scratch/no-docker.sock"));
    let answer = scene
        .ask(json!({"command": "echo it ran", "executor": "docker"}))
        .env("DOCKER_HOST", nowhere)
        .go();
    let (code, _) = answer.refused();
    assert_eq!(
        (code, answer.code),
        ("executor_unavailable", Some(125)),
        "{}",
        answer.told()
    );
    assert!(!answer.mentions("it ran"));
    let odd = scene.ask(json!({"command": "echo it ran", "executor": "remote"})).go();
    assert_eq!(odd.refused(), ("invalid_request", Some("executor")));
    let local = scene
        .ask(json!({"command": "echo it ran", "executor": "local"}))
        .go()
        .reported();
    assert_eq!(
        (&local["executor"], local.stdout()),
        (&Value::from("local"), "it ran\n")
    );
}
