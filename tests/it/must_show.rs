//! What the local executor has to show: the promises of the README, one test each.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::lab::{Answer, Ledger, Scene, all_processes, need, need_root, program, reap, reap_orphans, run_to_end};
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
        answer.told()
    );
    let file = answer.output("out/fib.txt");
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
fn fibonacci_from_the_repository_with_everything_enforced() {
    let scene = Scene::new();
    let answer = scene.tell_bare(&FIB).at(root()).go().reported();
    assert_fib(&answer);
    if need_root() {
        assert_eq!(answer.gaps(), [] as [&str; 0], "{}", answer.told());
        assert_eq!(answer["enforcement"]["tier"], "T0");
        for layer in [
            "seccomp",
            "mount_namespace",
            "memory",
            "landlock_files",
            "pids",
            "workspace_quota",
        ] {
            assert_eq!(answer.layer(layer), "enforced", "{layer}");
        }
    }
    // The built-in skills are embedded: the same works far from any repository.
    assert_fib(&scene.tell_bare(&FIB).go().reported());
}

/// A user that the test creates, and removes again.
struct MadeUser(u32);

impl MadeUser {
    const NAME: &str = "skillbox-it";

    fn make(scene: &Scene) -> Option<Self> {
        if !need_root() {
            return None;
        }
        let made = scene.control_sh(&format!(
            "useradd --system --no-create-home {} 2>&1; id -u {}",
            Self::NAME,
            Self::NAME
        ));
        let id = made.lines().last().and_then(|id| id.parse().ok());
        need(id.is_some(), "useradd").then(|| Self(id.unwrap()))
    }
}

impl Drop for MadeUser {
    fn drop(&mut self) {
        run_to_end(program("userdel").arg(Self::NAME), b"", Duration::from_secs(10));
    }
}

#[test]
fn an_ordinary_user_runs_at_the_tier_that_doctor_foretells() {
    let scene = Scene::new();
    let Some(user) = MadeUser::make(&scene) else { return };
    scene.give_to(user.0);
    let launcher = [
        "setpriv",
        &format!("--reuid={}", user.0),
        &format!("--regid={}", user.0),
        "--init-groups",
    ]
    .map(str::to_owned);
    let doctor = scene.tell(&["doctor", "--json"]).behind(&launcher).go();
    assert_eq!(doctor.code, Some(0), "{}", doctor.told());
    let answer = scene.tell_bare(&FIB).behind(&launcher).go().reported();
    assert_fib(&answer);
    assert_eq!(doctor["tier"], answer["enforcement"]["tier"], "{}", doctor.told());
    for layer in answer.gaps() {
        assert!(
            ["memory", "cpu", "cgroup_namespace", "workspace_quota", "pids"].contains(&layer),
            "{layer} is missing for a user: {}",
            answer.told()
        );
    }
    // Its session's workspace works between two of its processes, too.
    for command in ["echo kept > work/kept", "cat work/kept"] {
        let step = scene
            .ask(json!({"command": command}))
            .session("user")
            .behind(&launcher)
            .go()
            .reported();
        assert_eq!(step["exit_code"], 0, "{}", step.told());
    }
}

#[test]
fn a_pipeline_out_of_time_returns_at_once_and_leaves_nobody() {
    let scene = Scene::alone();
    let token = format!("60.{}", std::process::id());
    let line = format!("sleep {token} | cat");
    let answer = scene
        .tell(&["run", "probe", "--timeout", "1", "--json", "--", &line])
        .go()
        .reported();
    assert_eq!(
        (answer.code, &answer["timed_out"]),
        (Some(124), &json!(true)),
        "{}",
        answer.told()
    );
    assert!(
        answer.finished.wall < Duration::from_millis(1500),
        "{:?}",
        answer.finished.wall
    );
    assert!(scene.host_pids_with(&token).is_empty(), "a sleeper is left");
    // Outside, the same pipeline outlives its shell.
    let control = scene.control_sh(&format!(
        "timeout --foreground -s KILL 0.2 bash -c 'sleep 0.{0} | cat' ; pgrep -fx 'sleep 0.{0}' | wc -l",
        std::process::id() + 500_000
    ));
    assert!(control.ends_with('1'), "{control}");
}

#[test]
fn a_fifo_in_out_does_not_hang_and_a_late_run_keeps_its_files() {
    let scene = Scene::new();
    let answer = scene
        .tell(&["run", "probe", "--json", "--", "mkfifo out/f; echo x > out/x"])
        .go()
        .reported();
    assert!(answer.finished.wall < Duration::from_secs(3));
    assert_eq!(
        (answer.outputs(), answer.refused_outputs()),
        (vec!["out/x"], vec!["out/f"])
    );
    let late = "echo said; echo kept > out/kept.txt; mkfifo out/f; sleep 60";
    let answer = scene
        .tell(&[
            "run",
            "probe",
            "--timeout",
            "0.5",
            "--output",
            "out/*",
            "--json",
            "--",
            late,
        ])
        .go()
        .reported();
    assert_eq!(
        (answer.code, answer.stdout()),
        (Some(124), "said\n"),
        "{}",
        answer.told()
    );
    assert_eq!(answer.output("out/kept.txt")["content"], "kept\n");
}

#[test]
fn no_byte_of_a_canary_is_reachable() {
    let scene = Scene::new();
    let look = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; \
                for d in / /workspace /etc /run /var /tmp /dev /home /root /proc/1 /proc/self /mnt /opt /srv; do \
                  find $d -maxdepth 3 -xdev -type f -size -64k 2>/dev/null; done | grep -v ^/usr | sort -u | xargs -d '\\n' cat 2>/dev/null; true";
    let answer = scene
        .ask(json!({"command": look, "timeout": 60}))
        .session("canary")
        .go()
        .reported();
    assert!(!answer.mentions(scene.canary()), "{}", answer.told());
    assert!(!answer.stdout().contains("SECRET_CANARY"));
    assert!(
        answer["stdout_bytes"].as_u64().unwrap() > 1000,
        "it did look around: {}",
        answer.told()
    );
    let plain = scene.tell(&["run", "probe", "--", "env; cat /proc/*/environ"]).go();
    assert!(
        !plain.mentions(scene.canary()) && !plain.mentions("SECRET_CANARY"),
        "{}",
        plain.told()
    );
    assert!(scene.control_sh("env; cat /proc/*/environ").contains(scene.canary()));
}

#[test]
fn bombs_end_as_what_they_are_and_the_next_run_is_normal() {
    let scene = Scene::alone();
    let memory_is_enforced = scene.sh("true").layer("memory") == "enforced";
    let free = || {
        scene
            .control_sh("df --output=avail -k / | tail -n 1")
            .parse::<i64>()
            .unwrap()
    };
    let disk = free();
    let bombs: [(&str, Value, &[&str]); 4] = [
        (
            "fork",
            json!({"command": ":(){ :|:& };:; sleep 20", "timeout": 2}),
            &["pids", "timeout", "exit"],
        ),
        (
            "memory",
            json!({"argv": ["python3", "-c", "x = bytearray(3 << 30)"], "timeout": 20}),
            &["memory"],
        ),
        (
            "disk",
            json!({"command": "cat /dev/zero > work/a; cat /dev/zero > work/b; cat /dev/zero > work/c; exit 1", "timeout": 30}),
            &["disk", "exit", "memory"],
        ),
        (
            "inode",
            json!({"argv": ["python3", "-c", "import os\nfor i in range(1000000): os.mkdir(f'/workspace/work/{i}')"], "timeout": 60}),
            &["disk", "exit"],
        ),
    ];
    for (name, request, ends) in bombs {
        if name == "memory" && !need(memory_is_enforced, "a control group that limits memory") {
            continue;
        }
        let answer = scene.ask(request).go().reported();
        let ended = answer["ended_by"].as_str().unwrap();
        assert!(ends.contains(&ended), "{name}: {}", answer.told());
        assert_ne!(answer.code, Some(0), "{name}");
        let begin = Instant::now();
        assert_eq!(scene.sh("echo fine").stdout(), "fine\n", "after the {name} bomb");
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "after the {name} bomb: {:?}",
            begin.elapsed()
        );
    }
    assert!(disk - free() < 100 << 10, "the host lost {} KiB", disk - free());
}

#[test]
fn doctor_says_what_this_host_can_enforce() {
    let scene = Scene::new();
    let told = scene.tell(&["doctor"]).go();
    assert_eq!(told.code, Some(0), "{}", told.told());
    let text = String::from_utf8(told.finished.stdout.clone()).unwrap();
    let json = scene.tell(&["doctor", "--json"]).go();
    let run = scene.sh("true");
    assert_eq!(json["tier"], run["enforcement"]["tier"], "{}", json.told());
    for layer in run["enforcement"]["layers"].as_object().unwrap().keys() {
        let spoken = layer.replace('_', " ");
        assert!(
            text.to_lowercase().contains(&spoken) || text.contains(layer.as_str()),
            "doctor does not speak of {layer}:\n{text}"
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn the_plan_that_is_printed_is_the_plan_that_is_applied() {
    let scene = Scene::new();
    let plan = scene.tell(&["profiles", "plan", "default"]).go();
    assert_eq!(plan.code, Some(0), "{}", plan.told());
    let text = String::from_utf8(plan.finished.stdout.clone()).unwrap();
    let mounts = scene.sh("cut -d' ' -f5 /proc/self/mountinfo");
    for point in mounts
        .stdout()
        .lines()
        .filter(|point| *point != "/" && !point.starts_with("/workspace/skills/"))
    {
        assert!(text.contains(point), "{point} is mounted and not in the plan:\n{text}");
    }
    // The other way round: what the plan shows of the host is there.
    let shown = scene.tell(&["profiles", "show", "default", "--json"]).go();
    let visible: Vec<&str> = shown["filesystem"]["visible"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["path"].as_str())
        .collect();
    assert!(visible.contains(&"/usr"), "{}", shown.told());
    let there: Vec<&str> = visible.into_iter().filter(|path| Path::new(path).exists()).collect();
    let looked = scene.sh(&format!("ls -d {} | wc -l", there.join(" ")));
    assert_eq!(looked.stdout().trim(), there.len().to_string(), "{}", looked.told());
    for path in there {
        assert!(text.contains(path), "{path} is visible and not in the plan:\n{text}");
    }
}

#[test]
fn the_shipped_profiles_are_listed_and_sound() {
    let scene = Scene::new();
    let listed = scene.tell(&["profiles", "list", "--json"]).go();
    for name in ["strict", "default", "loopback", "unconfined"] {
        assert!(listed.mentions(&format!("\"{name}\"")), "{}", listed.told());
        let file = root().join(format!("sandbox-profiles/{name}.yaml"));
        let checked = scene.tell(&["profiles", "check", file.to_str().unwrap()]).go();
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.told());
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
        let file = scene.path("bad.yaml");
        fs::write(&file, text).unwrap();
        let checked = scene.tell(&["profiles", "check", file.to_str().unwrap()]).go();
        assert_eq!(checked.code, Some(1), "{text}: {}", checked.told());
        assert!(
            checked.mentions(&format!(":{line}:")) || checked.mentions(&format!("line {line}")),
            "{text}: {}",
            checked.told()
        );
    }
}

#[test]
fn without_isolation_a_run_needs_the_hosts_switch_and_says_so() {
    let scene = Scene::new();
    let words = ["run", "probe", "--json", "--profile", "unconfined", "--timeout", "10"];
    let refused = scene.tell(&words).with(&["--", "echo it ran"]).go();
    assert_eq!(
        (refused.refused().1, refused.code),
        (Some("profile"), Some(125)),
        "{}",
        refused.told()
    );
    let line = "cat SKILL.md | head -n 1; echo made > out/made.txt; exit 3";
    let answer = scene
        .tell(&words)
        .with(&["--allow-unconfined", "--output", "out/*", "--", line])
        .go()
        .reported();
    assert_eq!(
        (answer.stdout(), answer.code, &answer["profile"]),
        ("---\n", Some(3), &json!("unconfined")),
        "{}",
        answer.told()
    );
    assert_eq!(answer.output("out/made.txt")["content"], "made\n");
    assert_eq!(
        (answer.layer("seccomp"), answer.layer("wall_clock")),
        ("not_requested", "enforced")
    );
    assert_ne!(answer["enforcement"]["tier"], "T0");
}

/// Kills skillbox at so many points of a run, spread over its whole length.
fn kill_at_points(scene: &Scene, points: u32, victim: impl Fn(u32) -> Option<i32>) {
    let token = format!("{}-killed", scene.canary());
    // How long a run takes from start to the script's first word: the points lie within twice that.
    let usual = scene.sh("true").finished.wall;
    for point in 0..points {
        let session = if point % 2 == 0 { None } else { Some("killed") };
        let request = json!({"argv": ["bash", "-c", "echo x > /workspace/out/x; (sleep 30 & sleep 30) & sleep 30", token], "timeout": 30});
        let mut child = scene.ask(request).in_session(session).begin();
        std::thread::sleep(usual * 2 * point / points);
        if let Some(pid) = victim(child.id()) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            // A victim other than skillbox itself: skillbox notices and ends.
            let end = Instant::now() + Duration::from_secs(3);
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < end, "point {point}: skillbox did not notice");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        reap(&mut child);
        scene.wait_for("the end of everything", Duration::from_secs(3), || {
            scene.host_pids_with(&token).is_empty().then_some(())
        });
    }
}

/// Runs once more, which sweeps, and checks that nothing of the killed ones is left.
fn assert_swept(scene: &Scene, before: &Ledger, entries: usize) {
    // Dead helpers wait for us, who adopted them; a living owner would rightly be spared by the sweep.
    reap_orphans();
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
    let again = scene.ask(json!({"command": "echo fine"})).session("killed").go();
    assert_eq!(again.reported().stdout(), "fine\n", "the session is free again");
    let growth = before.growth();
    assert!(growth.is_empty(), "left behind: {growth:#?}");
    let later = state_entries(scene);
    assert!(
        later <= entries + 4,
        "the state directory grew from {entries} to {later} entries"
    );
}

/// Files and directories of the state, without those of each run inside a session's workspace.
fn state_entries(scene: &Scene) -> usize {
    let find = format!("find {} -path '*/runs/*' -prune -o -print | wc -l", scene.text("state"));
    scene.control_sh(&find).parse().unwrap()
}

#[test]
fn killing_the_runtime_at_fifty_points_leaves_nothing() {
    let scene = Scene::alone();
    scene
        .ask(json!({"command": "echo x > out/x"}))
        .session("killed")
        .go()
        .reported();
    let (before, entries) = (Ledger::now(), state_entries(&scene));
    kill_at_points(&scene, 50, |skillbox| i32::try_from(skillbox).ok());
    assert_swept(&scene, &before, entries);
}

#[test]
fn killing_what_stands_below_the_runtime_leaves_nothing() {
    let scene = Scene::alone();
    scene
        .ask(json!({"command": "echo x > out/x"}))
        .session("killed")
        .go()
        .reported();
    let (before, entries) = (Ledger::now(), state_entries(&scene));
    kill_at_points(&scene, 16, |skillbox| {
        let path = format!("/proc/{skillbox}/task/{skillbox}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().next().and_then(|pid| pid.parse().ok())
    });
    assert_swept(&scene, &before, entries);
}

/// Whoever starts skillbox in a container is often the first process there, and reaps nothing that it did not start.
#[test]
fn a_run_leaves_no_dead_child_to_others() {
    let scene = Scene::new();
    let own = i64::from(std::process::id());
    let spawners = || {
        let children = all_processes().into_iter().filter(|(_, parent, _)| *parent == own);
        let names = children.filter_map(|(pid, ..)| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        names.filter(|name| name.starts_with("skillbox-spawn")).count()
    };
    for words in [
        &["run", "probe", "--", "true"][..],
        &["run", "no-such-skill", "--", "true"],
        &["run", "probe", "--no-such-option", "--", "true"],
    ] {
        scene.tell(words).go();
        assert_eq!(spawners(), 0, "{words:?}");
    }
}
