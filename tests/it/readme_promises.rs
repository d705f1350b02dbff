//! The promises of the README about the local executor, one test each.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{
    Answer, Fixture, HostInventory, all_processes, assert_within, kill_and_reap, need, need_root, program,
    reap_orphans, run_to_completion,
};
use crate::workspace::root;

const FIB: [&str; 7] = [
    "run",
    "python-math",
    "--output",
    "out/*.txt",
    "--json",
    "--",
    "python3 scripts/fib.py 10 > out/fib.txt",
];

fn assert_fib(answer: &Answer) {
    assert_eq!(
        (answer.code, &answer["exit_code"]),
        (Some(0), &json!(0)),
        "{}",
        answer.describe()
    );
    let file = answer.output_file("out/fib.txt");
    assert_eq!(file["content"], "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n");
    assert_eq!(
        (&file["mime_type"], &file["size_bytes"]),
        (&json!("text/plain"), &json!(23))
    );
    let digest = file["sha256"].as_str().unwrap();
    assert!(
        digest.len() >= 64 && digest.bytes().rev().take(64).all(|byte| byte.is_ascii_hexdigit()),
        "{digest}"
    );
    assert_eq!(answer["primary_output"]["name"], "out/fib.txt");
}

#[test]
fn a_fibonacci_run_has_every_layer_enforced() {
    let fixture = Fixture::new();
    let answer = fixture.bare_command(&FIB).in_dir(root()).run().expect_report();
    assert_fib(&answer);
    if need_root() {
        assert_eq!(answer.missing_layers(), [] as [&str; 0], "{}", answer.describe());
        assert_eq!(answer["enforcement"]["tier"], "T0");
        for layer in [
            "seccomp",
            "mount_namespace",
            "memory",
            "landlock_files",
            "pids",
            "workspace_quota",
        ] {
            assert_eq!(answer.layer_status(layer), "enforced", "{layer}");
        }
    }
    // The built-in skills are embedded: the same works outside the repository.
    assert_fib(&fixture.bare_command(&FIB).run().expect_report());
}

/// A user that the test creates, and removes when dropped.
struct TemporaryUser(u32);

impl TemporaryUser {
    const NAME: &str = "skillbox-it";

    fn create(fixture: &Fixture) -> Option<Self> {
        if !need_root() {
            return None;
        }
        let output = fixture.control_shell(&format!(
            "useradd --system --no-create-home {} 2>&1; id -u {}",
            Self::NAME,
            Self::NAME
        ));
        let id = output.lines().last().and_then(|id| id.parse().ok());
        need(id.is_some(), "useradd").then(|| Self(id.unwrap()))
    }
}

impl Drop for TemporaryUser {
    fn drop(&mut self) {
        run_to_completion(program("userdel").arg(Self::NAME), b"", Duration::from_secs(60));
    }
}

#[test]
fn an_ordinary_user_runs_at_the_tier_that_doctor_reports() {
    let fixture = Fixture::new();
    let Some(user) = TemporaryUser::create(&fixture) else {
        return;
    };
    fixture.chown_to(user.0);
    let launcher = [
        "setpriv",
        &format!("--reuid={}", user.0),
        &format!("--regid={}", user.0),
        "--init-groups",
    ]
    .map(str::to_owned);
    let doctor = fixture.command(&["doctor", "--json"]).with_launcher(&launcher).run();
    assert_eq!(doctor.code, Some(0), "{}", doctor.describe());
    let answer = fixture
        .bare_command(&FIB)
        .with_launcher(&launcher)
        .run()
        .expect_report();
    assert_fib(&answer);
    assert_eq!(doctor["tier"], answer["enforcement"]["tier"], "{}", doctor.describe());
    for layer in answer.missing_layers() {
        assert!(
            ["memory", "cpu", "cgroup_namespace", "workspace_quota", "pids"].contains(&layer),
            "{layer} is missing for an ordinary user: {}",
            answer.describe()
        );
    }
    // Two processes of the user share the workspace of a session.
    for command in ["echo kept > work/kept", "cat work/kept"] {
        let step = fixture
            .request(json!({"command": command}))
            .in_session("user")
            .with_launcher(&launcher)
            .run()
            .expect_report();
        assert_eq!(step["exit_code"], 0, "{}", step.describe());
    }
}

#[test]
fn a_timed_out_pipeline_is_killed_with_all_its_processes() {
    let fixture = Fixture::exclusive();
    let token = format!("600.{}", std::process::id());
    let line = format!("sleep {token} | cat");
    let answer = fixture
        .command(&["run", "probe", "--timeout", "1", "--json", "--", &line])
        .run()
        .expect_report();
    assert_eq!(
        (answer.code, &answer["timed_out"]),
        (Some(124), &json!(true)),
        "{}",
        answer.describe()
    );
    assert_within(answer.process.wall, Duration::from_millis(1500), "a timeout of 1 s");
    assert!(
        fixture.host_pids_with(&token).is_empty(),
        "a process of the pipeline is left"
    );
    // The control: outside, the pipeline outlives its shell.
    let control = fixture.control_shell(&format!(
        "timeout --foreground -s KILL 1 bash -c 'sleep 90.{0} | cat' ; pgrep -fx 'sleep 90.{0}' | wc -l; pkill -fx 'sleep 90.{0}'",
        std::process::id()
    ));
    assert!(control.lines().any(|line| line == "1"), "{control}");
}

#[test]
fn a_fifo_output_does_not_block_and_a_timed_out_run_returns_its_files() {
    let fixture = Fixture::new();
    let answer = fixture
        .command(&["run", "probe", "--json", "--", "mkfifo out/f; echo x > out/x"])
        .run()
        .expect_report();
    assert_within(answer.process.wall, Duration::from_secs(3), "collecting a FIFO");
    assert_eq!(
        (answer.output_names(), answer.refused_output_names()),
        (vec!["out/x"], vec!["out/f"])
    );
    let slow = "echo printed; echo kept > out/kept.txt; mkfifo out/f; sleep 300";
    let answer = fixture
        .command(&[
            "run",
            "probe",
            "--timeout",
            "5",
            "--output",
            "out/*",
            "--json",
            "--",
            slow,
        ])
        .run()
        .expect_report();
    assert_eq!(
        (answer.code, answer.stdout()),
        (Some(124), "printed\n"),
        "{}",
        answer.describe()
    );
    assert_eq!(answer.output_file("out/kept.txt")["content"], "kept\n");
}

#[test]
fn no_canary_is_reachable() {
    let fixture = Fixture::new();
    let read_everything = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; \
                for d in / /workspace /etc /run /var /tmp /dev /home /root /proc/1 /proc/self /mnt /opt /srv; do \
                  find $d -maxdepth 3 -xdev -type f -size -64k 2>/dev/null; done | grep -v ^/usr | sort -u | xargs -d '\\n' cat 2>/dev/null; true";
    let answer = fixture
        .request(json!({"command": read_everything, "timeout": 110}))
        .in_session("canary")
        .run()
        .expect_report();
    assert!(!answer.mentions(fixture.canary()), "{}", answer.describe());
    assert!(!answer.stdout().contains("SECRET_CANARY"));
    assert!(
        answer["stdout_bytes"].as_u64().unwrap() > 1000,
        "the script did read files: {}",
        answer.describe()
    );
    let plain = fixture
        .command(&["run", "probe", "--", "env; cat /proc/*/environ"])
        .run();
    assert!(
        !plain.mentions(fixture.canary()) && !plain.mentions("SECRET_CANARY"),
        "{}",
        plain.describe()
    );
    assert!(
        fixture
            .control_shell("env; cat /proc/*/environ")
            .contains(fixture.canary())
    );
}

#[test]
fn resource_bombs_are_reported_by_kind_and_the_next_run_is_normal() {
    let fixture = Fixture::exclusive();
    let memory_is_enforced = fixture.run_shell("true").layer_status("memory") == "enforced";
    // The free space of the disk would also count what other programs write.
    let used_kib = || {
        let line = format!("du -sk '{}' | cut -f 1", fixture.root_dir().display());
        fixture.control_shell(&line).parse::<i64>().unwrap()
    };
    let used_before = used_kib();
    let bombs: [(&str, Value, &[&str]); 4] = [
        (
            "fork",
            json!({"command": ":(){ :|:& };:; sleep 300", "timeout": 2}),
            &["pids", "timeout", "exit"],
        ),
        (
            "memory",
            json!({"argv": ["python3", "-c", "x = bytearray(3 << 30)"], "timeout": 100}),
            &["memory"],
        ),
        (
            "disk",
            json!({"command": "cat /dev/zero > work/a; cat /dev/zero > work/b; cat /dev/zero > work/c; exit 1", "timeout": 100}),
            &["disk", "exit", "memory"],
        ),
        (
            "inode",
            json!({"argv": ["python3", "-c", "import os\nfor i in range(1000000): os.mkdir(f'/workspace/work/{i}')"], "timeout": 110}),
            &["disk", "exit"],
        ),
    ];
    for (name, request, ends) in bombs {
        if name == "memory" && !need(memory_is_enforced, "a control group that limits memory") {
            continue;
        }
        let answer = fixture.request(request).run().expect_report();
        let ended = answer["ended_by"].as_str().unwrap();
        assert!(ends.contains(&ended), "{name}: {}", answer.describe());
        assert_ne!(answer.code, Some(0), "{name}");
        let begin = Instant::now();
        assert_eq!(
            fixture.run_shell("echo fine").stdout(),
            "fine\n",
            "after the {name} bomb"
        );
        assert_within(
            begin.elapsed(),
            Duration::from_secs(2),
            &format!("after the {name} bomb"),
        );
    }
    let left = used_kib() - used_before;
    assert!(left < 100 << 10, "the runs left {left} KiB");
}

#[test]
fn doctor_lists_what_this_host_can_enforce() {
    let fixture = Fixture::new();
    let printed = fixture.command(&["doctor"]).run();
    assert_eq!(printed.code, Some(0), "{}", printed.describe());
    let text = String::from_utf8(printed.process.stdout.clone()).unwrap();
    let json = fixture.command(&["doctor", "--json"]).run();
    let run = fixture.run_shell("true");
    assert_eq!(json["tier"], run["enforcement"]["tier"], "{}", json.describe());
    for layer in run["enforcement"]["layers"].as_object().unwrap().keys() {
        let title = layer.replace('_', " ");
        assert!(
            text.to_lowercase().contains(&title) || text.contains(layer.as_str()),
            "doctor does not list {layer}:\n{text}"
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn the_printed_plan_is_the_applied_plan() {
    let fixture = Fixture::new();
    let plan = fixture.command(&["profiles", "plan", "default"]).run();
    assert_eq!(plan.code, Some(0), "{}", plan.describe());
    let text = String::from_utf8(plan.process.stdout.clone()).unwrap();
    let mounts = fixture.run_shell("cut -d' ' -f5 /proc/self/mountinfo");
    for point in mounts
        .stdout()
        .lines()
        .filter(|point| *point != "/" && !point.starts_with("/workspace/skills/"))
    {
        assert!(text.contains(point), "{point} is mounted and not in the plan:\n{text}");
    }
    // The reverse: every visible path of the plan exists in the sandbox.
    let shown = fixture.command(&["profiles", "show", "default", "--json"]).run();
    let visible: Vec<&str> = shown["filesystem"]["visible"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["path"].as_str())
        .collect();
    assert!(visible.contains(&"/usr"), "{}", shown.describe());
    let existing: Vec<&str> = visible.into_iter().filter(|path| Path::new(path).exists()).collect();
    let listed = fixture.run_shell(&format!("ls -d {} | wc -l", existing.join(" ")));
    assert_eq!(
        listed.stdout().trim(),
        existing.len().to_string(),
        "{}",
        listed.describe()
    );
    for path in existing {
        assert!(text.contains(path), "{path} is visible and not in the plan:\n{text}");
    }
}

#[test]
fn the_shipped_profiles_are_listed_and_valid() {
    let fixture = Fixture::new();
    let listed = fixture.command(&["profiles", "list", "--json"]).run();
    for name in ["strict", "default", "loopback", "network", "unconfined"] {
        assert!(listed.mentions(&format!("\"{name}\"")), "{}", listed.describe());
        let file = root().join(format!("sandbox-profiles/{name}.yaml"));
        let checked = fixture.command(&["profiles", "check", file.to_str().unwrap()]).run();
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.describe());
    }
    for (text, line) in [
        ("name: x\ndescription: d\nextends: default\nlimts:\n  wall: 1 s\n", 4),
        ("name: x\ndescription: d\nextends: default\nlimits:\n  wall: soon\n", 5),
        (
            "name: x\ndescription: d\nextends: default\nfilesystem:\n  visible:\n    - path: /opt\n",
            6,
        ),
        (
            "name: x\ndescription: d\nextends: default\nlayers:\n  seccomp: maybe\n",
            5,
        ),
        ("name: x\ndescription: d\nextends: nowhere\n", 3),
    ] {
        let file = fixture.path("bad.yaml");
        fs::write(&file, text).unwrap();
        let checked = fixture.command(&["profiles", "check", file.to_str().unwrap()]).run();
        assert_eq!(checked.code, Some(1), "{text}: {}", checked.describe());
        assert!(
            checked.mentions(&format!(":{line}:")) || checked.mentions(&format!("line {line}")),
            "{text}: {}",
            checked.describe()
        );
    }
}

#[test]
fn an_unconfined_run_needs_the_allow_flag_and_reports_its_layers() {
    let fixture = Fixture::new();
    let words = ["run", "probe", "--json", "--profile", "unconfined", "--timeout", "10"];
    let refused = fixture.command(&words).with_args(&["--", "echo it ran"]).run();
    assert_eq!(
        (refused.expect_refusal().1, refused.code),
        (Some("profile"), Some(125)),
        "{}",
        refused.describe()
    );
    let line = "cat SKILL.md | head -n 1; echo made > out/made.txt; exit 3";
    let answer = fixture
        .command(&words)
        .with_args(&["--allow-unconfined", "--output", "out/*", "--", line])
        .run()
        .expect_report();
    assert_eq!(
        (answer.stdout(), answer.code, &answer["profile"]),
        ("---\n", Some(3), &json!("unconfined")),
        "{}",
        answer.describe()
    );
    assert_eq!(answer.output_file("out/made.txt")["content"], "made\n");
    assert_eq!(
        (answer.layer_status("seccomp"), answer.layer_status("wall_clock")),
        ("not_requested", "enforced")
    );
    assert_ne!(answer["enforcement"]["tier"], "T0");
}

/// Kills a process of skillbox at this number of moments, spread over the whole length of a run.
fn kill_at_points(fixture: &Fixture, points: u32, victim: impl Fn(u32) -> Option<i32>) {
    let token = format!("{}-killed", fixture.canary());
    // The moments are spread over twice the time of a short run.
    let usual_time = fixture.run_shell("true").process.wall;
    for point in 0..points {
        let session = if point % 2 == 0 { None } else { Some("killed") };
        let request = json!({"argv": ["bash", "-c", "echo x > /workspace/out/x; (sleep 300 & sleep 300) & sleep 300", token], "timeout": 300});
        let mut child = fixture.request(request).in_optional_session(session).spawn();
        std::thread::sleep(usual_time * 2 * point / points);
        if let Some(pid) = victim(child.id()) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            // Without this process skillbox ends by itself.
            fixture.wait_for("the end of skillbox", || child.try_wait().unwrap());
        }
        kill_and_reap(&mut child);
        fixture.wait_for_no_process_with(&token);
    }
}

/// Runs once more, which cleans up, and checks that nothing of the killed runs is left.
fn assert_cleaned_up(fixture: &Fixture, before: &HostInventory, entries: usize) {
    // This process adopted the dead helpers. The clean-up spares what has a living owner, so they are reaped first.
    reap_orphans();
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
    let again = fixture
        .request(json!({"command": "echo fine"}))
        .in_session("killed")
        .run();
    assert_eq!(again.expect_report().stdout(), "fine\n", "the session is usable again");
    let growth = before.growth_after_cleanup();
    assert!(growth.is_empty(), "left behind: {growth:#?}");
    let later = state_entries(fixture);
    assert!(
        later <= entries + 4,
        "the state directory grew from {entries} to {later} entries"
    );
}

/// The number of files and directories of the state, without the run directories in the workspace of a session.
fn state_entries(fixture: &Fixture) -> usize {
    let find = format!(
        "find {} -path '*/runs/*' -prune -o -print | wc -l",
        fixture.path_str("state")
    );
    fixture.control_shell(&find).parse().unwrap()
}

#[test]
fn killing_skillbox_at_fifty_points_leaves_nothing() {
    let fixture = Fixture::exclusive();
    fixture
        .request(json!({"command": "echo x > out/x"}))
        .in_session("killed")
        .run()
        .expect_report();
    let (before, entries) = (HostInventory::take(), state_entries(&fixture));
    kill_at_points(&fixture, 50, |skillbox| i32::try_from(skillbox).ok());
    assert_cleaned_up(&fixture, &before, entries);
}

#[test]
fn killing_the_spawner_at_sixteen_points_leaves_nothing() {
    let fixture = Fixture::exclusive();
    fixture
        .request(json!({"command": "echo x > out/x"}))
        .in_session("killed")
        .run()
        .expect_report();
    let (before, entries) = (HostInventory::take(), state_entries(&fixture));
    kill_at_points(&fixture, 16, |skillbox| {
        let path = format!("/proc/{skillbox}/task/{skillbox}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().next().and_then(|pid| pid.parse().ok())
    });
    assert_cleaned_up(&fixture, &before, entries);
}

/// In a container, the parent of skillbox is often pid 1, which reaps no process that it did not start.
#[test]
fn a_run_leaves_no_unreaped_spawner() {
    let fixture = Fixture::new();
    let own = i64::from(std::process::id());
    let spawner_count = || {
        let children = all_processes().into_iter().filter(|(_, parent, _)| *parent == own);
        let names = children.filter_map(|(pid, ..)| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        names.filter(|name| name.starts_with("skillbox-spawn")).count()
    };
    for words in [
        &["run", "probe", "--", "true"][..],
        &["run", "no-such-skill", "--", "true"],
        &["run", "probe", "--no-such-option", "--", "true"],
    ] {
        fixture.command(words).run();
        assert_eq!(spawner_count(), 0, "{words:?}");
    }
}
