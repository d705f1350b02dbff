//! 3.6: processes, signals, tracing, identities.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{CanaryProcess, Scene, need_root, ordinary_user, reap};

#[test]
fn h063_signals_stay_in_the_sandbox() {
    let scene = Scene::new();
    let mut canary = CanaryProcess::start(&scene);
    let sacrifice = CanaryProcess::start(&scene);
    assert_eq!(
        scene.control("signal_process.py", &["kill", &sacrifice.pid(), "9"]),
        "allowed"
    );
    let request = json!({"argv": ["python3", "scripts/kill_everything.py"], "timeout": 30});
    let answer = scene.ask(request).go().reported();
    assert!(canary.is_well(), "the host's process was hit");
    assert!(
        matches!(answer["ended_by"].as_str(), Some("exit" | "signal")),
        "{}",
        answer.told()
    );
    // Its own keeper cannot be killed from inside: the script lives on and says so.
    assert_eq!(answer.stdout(), "alive\n", "{}", answer.told());
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
}

#[test]
fn h064_pids_of_the_host_mean_nothing() {
    let scene = Scene::new();
    let mut canary = CanaryProcess::start(&scene);
    let pid = canary.pid();
    for way in ["kill", "tgkill", "tkill", "pidfd"] {
        assert_eq!(
            scene.control("signal_process.py", &[way, &pid, "0"]),
            "allowed",
            "{way}"
        );
        scene.refuses_inside(&[("signal_process.py", &[way, &pid, "19"])]);
    }
    assert!(canary.is_well());
}

#[test]
fn h065_nobody_is_traced_or_read() {
    let scene = Scene::new();
    for way in ["attach", "seize", "traceme", "readv", "writev", "kcmp", "getfd"] {
        if need_root() {
            assert_eq!(scene.control("trace.py", &[way, "child"]), "allowed", "{way}");
        }
        scene.refuses_inside(&[("trace.py", &[way, "child"]), ("trace.py", &[way, "init"])]);
    }
    scene.refuses_inside(&[("trace.py", &["mem", "init"])]);
}

#[test]
pub fn h066_a_fork_bomb_ends_at_the_limit() {
    let scene = Scene::new();
    scene.profile("few", &[("pids", "32")]);
    let request = json!({"command": ":(){ :|:& };: ; sleep 30", "profile": "few", "timeout": 2});
    let answer = scene.ask(request).go().reported();
    assert!(
        answer.finished.wall < Duration::from_millis(3500),
        "{:?}",
        answer.finished.wall
    );
    let ended = answer["ended_by"].as_str().unwrap();
    assert!(matches!(ended, "pids" | "timeout" | "exit"), "{}", answer.told());
    assert!(ended != "exit" || answer["exit_code"] != 0, "{}", answer.told());
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
    // A script that meets the limit and gives up is told apart from one that merely fails.
    let gives_up = "python3 -c \"import subprocess\nwhile True: subprocess.Popen(['sleep', '20'])\"";
    let answer = scene
        .ask(json!({"command": gives_up, "profile": "few", "timeout": 10}))
        .go()
        .reported();
    assert_eq!(answer["ended_by"], "pids", "{}", answer.told());
    // Without the limit the same number is no problem.
    assert_eq!(
        scene.control_sh("for i in $(seq 100); do sleep 0.2 & done; jobs | wc -l"),
        "100"
    );
}

#[test]
pub fn h067_threads_count_as_processes() {
    let scene = Scene::new();
    scene.profile("few", &[("pids", "32")]);
    assert_eq!(scene.control("eat_threads.py", &["200"]), "uncapped");
    let request = json!({"argv": ["python3", "scripts/eat_threads.py", "200"], "profile": "few", "timeout": 20});
    assert_eq!(scene.ask(request).go().word(), "capped");
    assert_eq!(
        scene.probe("eat_threads.py", &["100"]),
        "uncapped",
        "the default profile has room for threads"
    );
}

#[test]
pub fn h068_a_deaf_script_is_killed_at_the_deadline() {
    let scene = Scene::new();
    let deaf = "trap '' TERM INT HUP QUIT USR1 USR2 PIPE; echo deaf; while :; do sleep 1; done";
    let answer = scene.ask(json!({"command": deaf, "timeout": 0.4})).go().reported();
    assert_eq!(
        (&answer["ended_by"], &answer["timed_out"], answer.code),
        (&json!("timeout"), &json!(true), Some(124))
    );
    assert_eq!(answer["stdout"], "deaf\n");
    assert!(
        answer.finished.wall < Duration::from_millis(1400),
        "{:?}",
        answer.finished.wall
    );
    let masked = "import signal,time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1,65)); time.sleep(60)";
    let answer = scene
        .ask(json!({"argv": ["python3", "-c", masked], "timeout": 0.4}))
        .go()
        .reported();
    assert_eq!(answer["ended_by"], "timeout");
}

#[test]
pub fn h069_a_daemon_dies_with_its_run() {
    let scene = Scene::new();
    let daemon = |way: &str| json!({"argv": ["python3", "scripts/daemon.py", way, "/workspace/work/late", "0.3"]});
    let control = scene.text("scratch/late");
    assert_eq!(scene.control("daemon.py", &["plain", &control, "0.1"]), "left");
    scene.wait_for("the control's daemon", Duration::from_secs(5), || {
        fs::metadata(&control).ok()
    });
    for way in ["plain", "deaf", "holding"] {
        let answer = scene.ask(daemon(way)).session("daemon").go().reported();
        assert_eq!(
            (&answer["exit_code"], answer.stdout()),
            (&json!(0), "left\n"),
            "{way}: {}",
            answer.told()
        );
    }
    std::thread::sleep(Duration::from_millis(400));
    let look = scene
        .ask(json!({"command": "ls work/"}))
        .session("daemon")
        .go()
        .reported();
    assert!(!look.stdout().contains("late"), "a daemon lived on: {}", look.told());
}

#[test]
pub fn h070_a_grandchild_that_holds_the_output_delays_nobody() {
    let scene = Scene::new();
    for command in [
        "sleep 50 & echo hi",
        "(setsid sleep 50 &) ; echo hi",
        "sleep 50 | sleep 50 & echo hi; exit 0",
    ] {
        let answer = scene
            .ask(json!({"command": command, "timeout": 40}))
            .within(Duration::from_secs(20))
            .go()
            .reported();
        assert_eq!(
            (&answer["exit_code"], answer.stdout()),
            (&json!(0), "hi\n"),
            "{command}"
        );
        assert!(
            answer.finished.wall < Duration::from_secs(3),
            "{command}: {:?}",
            answer.finished.wall
        );
    }
}

#[test]
pub fn h071_a_stopped_script_is_killed_at_the_deadline() {
    let scene = Scene::new();
    let vfork = "import ctypes; ctypes.CDLL(None).vfork() or __import__('time').sleep(60)";
    for argv in [
        vec!["bash", "-c", "kill -STOP $$"],
        vec!["bash", "-c", "sleep 60 & kill -STOP -1; kill -STOP $$"],
        vec!["python3", "-c", vfork],
    ] {
        let answer = scene.ask(json!({"argv": argv, "timeout": 0.4})).go().reported();
        assert_eq!(answer["ended_by"], "timeout", "{argv:?}: {}", answer.told());
        assert!(
            answer.finished.wall < Duration::from_millis(1500),
            "{argv:?}: {:?}",
            answer.finished.wall
        );
    }
}

#[test]
fn h072_zombies_are_reaped_and_init_cannot_be_killed() {
    let scene = Scene::new();
    // Many more orphans than the limit of processes: they must be reaped as they end.
    let flood = "for i in $(seq 600); do (true &); done; sleep 0.2; kill -9 1; kill -TERM 1; kill -SEGV 1; \
                 grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l";
    let answer = scene.ask(json!({"command": flood, "timeout": 30})).go().reported();
    assert_eq!(answer["exit_code"], 0, "{}", answer.told());
    assert!(
        answer.stdout().trim().parse::<u32>().unwrap() < 5,
        "zombies stay: {}",
        answer.told()
    );
}

#[test]
fn h073_priority_cannot_be_raised() {
    let scene = Scene::new();
    for way in ["nice", "fifo", "deadline", "io"] {
        if need_root() {
            assert_eq!(scene.control("raise_priority.py", &[way]), "allowed", "{way}");
        }
        scene.refuses_inside(&[("raise_priority.py", &[way])]);
    }
}

#[test]
fn h074_subreapers_and_death_signals_do_not_save_a_process() {
    let scene = Scene::new();
    let request = json!({"argv": ["python3", "scripts/daemon.py", "subreaper", "/workspace/work/late", "0.2"]});
    let answer = scene.ask(request).session("subreaper").go().reported();
    assert_eq!(answer.stdout(), "left\n");
    std::thread::sleep(Duration::from_millis(300));
    let look = scene
        .ask(json!({"command": "ls work/"}))
        .session("subreaper")
        .go()
        .reported();
    assert!(!look.stdout().contains("late"), "{}", look.told());
}

#[test]
pub fn h075_setuid_programs_give_nothing() {
    let scene = Scene::new();
    if !need_root() {
        return;
    }
    // A program of root with the setuid bit, shipped with the skill itself.
    let planted = scene.skill_file("probe", "scripts/who");
    fs::copy("/usr/bin/id", &planted).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o4755)).unwrap();
    let (_, user) = ordinary_user();
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    let outside = scene.control_sh(&format!("{} {} -u", user.join(" "), planted.display()));
    assert_eq!(outside, "0", "outside, the bit works");
    let answer = scene.sh(
        "id -u; scripts/who -u; id -ru; cp scripts/who work/who; chmod 4755 work/who; work/who -u; \
                           find / -xdev -perm -4000 -user root 2>/dev/null | head -n 3",
    );
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_ne!(lines[0], "0", "the script is an ordinary user");
    assert!(lines[1..4].iter().all(|id| *id == lines[0]), "{}", answer.told());
    let su = scene.sh("for p in su sudo mount ping passwd newgrp; do command -v $p >/dev/null && timeout 2 $p -c id </dev/null; done 2>&1 | grep -c uid=0");
    assert_eq!(su.stdout().trim(), "0", "{}", su.told());
}

#[test]
pub fn h076_file_capabilities_are_ignored() {
    let scene = Scene::new();
    if !need_root() {
        return;
    }
    let planted = scene.skill_file("probe", "scripts/capable");
    fs::copy("/usr/bin/grep", &planted).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
    // CAP_NET_RAW and CAP_DAC_READ_SEARCH, effective, in the kernel's second format.
    let grant = format!(
        "import os; os.setxattr({:?}, 'security.capability', bytes.fromhex('010000020420000000000000' + '0' * 16))",
        planted.to_str().unwrap()
    );
    scene.control_sh(&format!("python3 -c \"{}\"", grant.replace('"', "\\\"")));
    let (_, user) = ordinary_user();
    let outside = scene.control_sh(&format!(
        "{} {} ^CapEff /proc/self/status",
        user.join(" "),
        planted.display()
    ));
    assert!(
        !outside.ends_with("0000000000000000") && !outside.is_empty(),
        "outside, they work: {outside}"
    );
    let inside = scene
        .sh("scripts/capable ^CapEff /proc/self/status; cp scripts/capable work/c; work/c ^CapEff /proc/self/status");
    assert!(!inside.stdout().is_empty());
    assert!(
        inside.stdout().lines().all(|line| line.ends_with("0000000000000000")),
        "{}",
        inside.told()
    );
}

#[test]
fn h077_identities_cannot_be_taken() {
    let scene = Scene::new();
    for way in [
        "setuid",
        "setgid",
        "setresuid",
        "setreuid_unmapped",
        "setgroups",
        "setfsuid",
    ] {
        if need_root() {
            assert_eq!(scene.control("become.py", &[way]), "allowed", "{way}");
        }
        scene.refuses_inside(&[("become.py", &[way])]);
    }
    let ids = scene.sh("id -u; id -g; id -G; stat -c %u /workspace/out /workspace/skills/probe/SKILL.md");
    assert!(ids.stdout().lines().take(3).all(|id| id != "0"), "{}", ids.told());
    // On the host, what the script writes belongs to nobody important.
    let request = json!({"command": "echo x > work/owned; chmod 6777 work/owned; mkdir work/dir"});
    scene.ask(request).session("owner").go().reported();
    let owned = crate::workspace::files_below(&scene.path("state"))
        .into_iter()
        .find(|path| path.ends_with("work/owned"));
    if let Some(path) = owned {
        let meta = fs::metadata(&path).unwrap();
        assert!(
            meta.uid() != 0 || !rustix::process::geteuid().is_root(),
            "{} is root's on the host",
            path.display()
        );
    } else {
        // A workspace behind a filesystem image has no path on the host at all.
        assert!(need_root());
    }
    let state = fs::metadata(scene.path("state")).unwrap();
    let reach = state.permissions().mode() & 0o077;
    let closed_inside = fs::read_dir(scene.path("state"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_type().unwrap().is_dir());
    for entry in closed_inside {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
        assert!(
            reach == 0 || mode == 0,
            "others can enter {}: {mode:o}",
            entry.path().display()
        );
    }
}

#[test]
pub fn h078_the_death_of_skillbox_is_the_death_of_the_script() {
    let scene = Scene::new();
    let token = format!("{}-token", scene.canary());
    let mut child = scene
        .ask(json!({"argv": ["bash", "-c", "sleep 50 & sleep 50", token]}))
        .begin();
    let pids = scene.wait_for("the script", Duration::from_secs(10), || {
        let pids = scene.host_pids_with(&token);
        let inside =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "bash");
        pids.iter().any(inside).then_some(pids)
    });
    assert!(!pids.is_empty());
    reap(&mut child);
    scene.wait_for("the script's end", Duration::from_secs(2), || {
        scene.host_pids_with(&token).is_empty().then_some(())
    });
    assert_eq!(
        scene.sh("echo fine").stdout(),
        "fine\n",
        "the next start sweeps and runs"
    );
}

#[test]
fn a_session_whose_run_was_killed_counts_it_and_goes_on() {
    let scene = Scene::new();
    let token = format!("{}-token", scene.canary());
    let request = json!({"argv": ["bash", "-c", "touch $RUN_DIR/left; sleep 50; true", token]});
    let mut child = scene.ask(request).session("killed").begin();
    let runs = || {
        let shown = scene.tell(&["session", "show", "killed", "--json"]).go();
        assert_eq!(shown.code, Some(0), "{}", shown.told());
        shown["runs"].as_u64().unwrap()
    };
    scene.wait_for("the script", Duration::from_secs(10), || {
        (!scene.host_pids_with(&token).is_empty()).then_some(())
    });
    assert_eq!(runs(), 1, "told while it runs");
    reap(&mut child);
    assert_eq!(runs(), 1);
    let next = json!({"command": "ls /workspace/runs/*/left | wc -l"});
    assert_eq!(scene.ask(next).session("killed").go().reported().stdout(), "1\n");
    assert_eq!(runs(), 2);
}

#[test]
fn h079_broken_programs_are_ordinary_errors() {
    let scene = Scene::new();
    let elf = fs::read("/usr/bin/true").unwrap();
    let mut foreign = elf.clone();
    foreign[18] = 0xf3; // The machine's number: RISC-V.
    let mut corrupt = elf[..200].to_vec();
    corrupt[32..60].fill(0xff);
    let files: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("one", b"x"),
        ("corrupt", &corrupt),
        ("foreign", &foreign),
        ("crlf", b"#!/bin/bash\r\necho crlf\r\n"),
        ("noise", &[0xff; 64]),
    ];
    for (name, content) in files {
        let path = scene.skill_file("probe", &format!("scripts/{name}"));
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (name, _) in files {
        for request in [
            json!({"argv": [format!("/workspace/skills/probe/scripts/{name}")], "timeout": 10}),
            json!({"command": format!("scripts/{name}"), "timeout": 10}),
        ] {
            let answer = scene.ask(request.clone()).go().reported();
            assert!(
                matches!(answer["ended_by"].as_str(), Some("exit" | "signal")),
                "{request}: {}",
                answer.told()
            );
            let code = answer["exit_code"].as_i64();
            assert!(
                name == "empty" || matches!(code, Some(126 | 127) | None),
                "{request}: {code:?}"
            );
        }
    }
    // A script with Windows line ends runs by `script`, where the interpreter line is read by us.
    let answer = scene.ask(json!({"script": "scripts/crlf"})).go().reported();
    assert!(answer.stdout().contains("crlf"), "{}", answer.told());
    assert_eq!(
        scene.ask(json!({"argv": ["no-such-program"]})).go().reported()["exit_code"],
        Value::from(127)
    );
    assert_eq!(
        scene.ask(json!({"argv": ["/usr"]})).go().reported()["exit_code"],
        Value::from(126)
    );
}
