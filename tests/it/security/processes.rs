//! 3.6: processes, signals, tracing, identities.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{CanaryProcess, Fixture, assert_within, kill_and_reap, need_root, ordinary_user};

#[test]
fn h063_signals_stay_in_the_sandbox() {
    let fixture = Fixture::new();
    let mut canary = CanaryProcess::start(&fixture);
    let sacrifice = CanaryProcess::start(&fixture);
    assert_eq!(
        fixture.control_probe("signal_process.py", &["kill", &sacrifice.pid(), "9"]),
        "allowed"
    );
    let request = json!({"argv": ["python3", "scripts/kill_everything.py"], "timeout": 100});
    let answer = fixture.request(request).run().expect_report();
    assert!(canary.is_running(), "a process of the host was killed");
    assert!(
        matches!(answer["ended_by"].as_str(), Some("exit" | "signal")),
        "{}",
        answer.describe()
    );
    // Its init process cannot be killed from inside: the script survives and prints a word.
    assert_eq!(answer.stdout(), "alive\n", "{}", answer.describe());
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
}

#[test]
fn h064_host_pids_are_invalid_inside() {
    let fixture = Fixture::new();
    let mut canary = CanaryProcess::start(&fixture);
    let pid = canary.pid();
    for way in ["kill", "tgkill", "tkill", "pidfd"] {
        assert_eq!(
            fixture.control_probe("signal_process.py", &[way, &pid, "0"]),
            "allowed",
            "{way}"
        );
        fixture.assert_refused_inside(&[("signal_process.py", &[way, &pid, "19"])]);
    }
    assert!(canary.is_running());
}

#[test]
fn h065_no_process_can_be_traced_or_read() {
    let fixture = Fixture::new();
    for way in ["attach", "seize", "traceme", "readv", "writev", "kcmp", "getfd"] {
        if need_root() {
            assert_eq!(fixture.control_probe("trace.py", &[way, "child"]), "allowed", "{way}");
        }
        fixture.assert_refused_inside(&[("trace.py", &[way, "child"]), ("trace.py", &[way, "init"])]);
    }
    fixture.assert_refused_inside(&[("trace.py", &["mem", "init"])]);
}

#[test]
pub fn h066_a_fork_bomb_ends_at_the_limit() {
    let fixture = Fixture::new();
    fixture.add_profile("few", &[("pids", "32")]);
    let request = json!({"command": ":(){ :|:& };: ; sleep 300", "profile": "few", "timeout": 2});
    let answer = fixture.request(request).run().expect_report();
    assert_within(
        answer.process.wall,
        Duration::from_millis(3500),
        "a fork bomb with a timeout of 2 s",
    );
    let ended = answer["ended_by"].as_str().unwrap();
    assert!(matches!(ended, "pids" | "timeout" | "exit"), "{}", answer.describe());
    assert!(ended != "exit" || answer["exit_code"] != 0, "{}", answer.describe());
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
    // A script that reaches the limit and gives up is distinguished from one that merely fails.
    let gives_up = "python3 -c \"import subprocess\nwhile True: subprocess.Popen(['sleep', '300'])\"";
    let answer = fixture
        .request(json!({"command": gives_up, "profile": "few", "timeout": 100}))
        .run()
        .expect_report();
    assert_eq!(answer["ended_by"], "pids", "{}", answer.describe());
    // Outside, nothing limits the number.
    assert_eq!(
        fixture.control_shell("for i in $(seq 100); do sleep 5 & done; jobs | wc -l; kill $(jobs -p)"),
        "100"
    );
}

#[test]
pub fn h067_threads_count_as_processes() {
    let fixture = Fixture::new();
    fixture.add_profile("few", &[("pids", "32")]);
    assert_eq!(fixture.control_probe("eat_threads.py", &["200"]), "uncapped");
    let request = json!({"argv": ["python3", "scripts/eat_threads.py", "200"], "profile": "few", "timeout": 100});
    assert_eq!(fixture.request(request).run().expect_word(), "capped");
    assert_eq!(
        fixture.run_probe("eat_threads.py", &["100"]),
        "uncapped",
        "the default profile allows a hundred threads"
    );
}

#[test]
pub fn h068_a_script_that_ignores_signals_is_killed_at_the_timeout() {
    let fixture = Fixture::new();
    let ignoring = "trap '' TERM INT HUP QUIT USR1 USR2 PIPE; echo ignoring; while :; do sleep 1; done";
    let answer = fixture
        .request(json!({"command": ignoring, "timeout": 2}))
        .run()
        .expect_report();
    assert_eq!(
        (&answer["ended_by"], &answer["timed_out"], answer.code),
        (&json!("timeout"), &json!(true), Some(124))
    );
    assert_eq!(answer["stdout"], "ignoring\n");
    assert_within(answer.process.wall, Duration::from_secs(3), "a timeout of 2 s");
    let masked = "import signal,time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1,65)); time.sleep(300)";
    let answer = fixture
        .request(json!({"argv": ["python3", "-c", masked], "timeout": 2}))
        .run()
        .expect_report();
    assert_eq!(answer["ended_by"], "timeout");
}

#[test]
pub fn h069_a_daemon_dies_with_its_run() {
    let fixture = Fixture::new();
    // A daemon has its file among its arguments, which the host sees.
    let file = |way: &str| format!("/workspace/work/{}-{way}", fixture.canary());
    let control = fixture.path_str("scratch/late");
    assert_eq!(fixture.control_probe("daemon.py", &["plain", &control, "0.1"]), "left");
    fixture.wait_for("the file of the control's daemon", || fs::metadata(&control).ok());
    for way in ["plain", "deaf", "holding"] {
        let argv = ["python3", "scripts/daemon.py", way, &file(way), "300"];
        let answer = fixture
            .request(json!({"argv": argv}))
            .in_session("daemon")
            .run()
            .expect_report();
        assert_eq!(
            (&answer["exit_code"], answer.stdout()),
            (
                &json!(0),
                "left
"
            ),
            "{way}: {}",
            answer.describe()
        );
        assert_eq!(
            fixture.host_pids_with(&file(way)),
            [] as [i32; 0],
            "{way}: a daemon lives"
        );
    }
    let listing = fixture
        .request(json!({"command": "ls work/"}))
        .in_session("daemon")
        .run()
        .expect_report();
    assert!(
        !listing.stdout().contains(fixture.canary()),
        "a daemon wrote its file: {}",
        listing.describe()
    );
}

#[test]
pub fn h070_a_background_child_that_holds_the_output_does_not_delay_the_end() {
    let fixture = Fixture::new();
    for command in [
        "sleep 300 & echo hi",
        "(setsid sleep 300 &) ; echo hi",
        "sleep 300 | sleep 300 & echo hi; exit 0",
    ] {
        let answer = fixture
            .request(json!({"command": command, "timeout": 200}))
            .run()
            .expect_report();
        assert_eq!(
            (&answer["exit_code"], answer.stdout()),
            (
                &json!(0),
                "hi
"
            ),
            "{command}"
        );
        assert_within(answer.process.wall, Duration::from_secs(3), command);
    }
}

#[test]
pub fn h071_a_stopped_script_is_killed_at_the_timeout() {
    let fixture = Fixture::new();
    let vfork = "import ctypes; ctypes.CDLL(None).vfork() or __import__('time').sleep(300)";
    for argv in [
        vec!["bash", "-c", "kill -STOP $$"],
        vec!["bash", "-c", "sleep 300 & kill -STOP -1; kill -STOP $$"],
        vec!["python3", "-c", vfork],
    ] {
        let answer = fixture
            .request(json!({"argv": argv, "timeout": 1}))
            .run()
            .expect_report();
        assert_eq!(answer["ended_by"], "timeout", "{argv:?}: {}", answer.describe());
        assert_within(answer.process.wall, Duration::from_millis(2100), argv[2]);
    }
}

#[test]
fn h072_zombies_are_reaped_and_init_cannot_be_killed() {
    let fixture = Fixture::new();
    // Many more orphans than the limit of processes: they must be reaped as they end. The last ones get a while for it.
    let flood = "for i in $(seq 600); do (true &); done; kill -9 1; kill -TERM 1; kill -SEGV 1; \
                 for i in $(seq 300); do n=$(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l); \
                 [ $n -lt 5 ] && break; sleep 0.1; done; echo $n";
    let answer = fixture
        .request(json!({"command": flood, "timeout": 100}))
        .run()
        .expect_report();
    assert_eq!(answer["exit_code"], 0, "{}", answer.describe());
    assert!(
        answer.stdout().trim().parse::<u32>().unwrap() < 5,
        "zombies are not reaped: {}",
        answer.describe()
    );
}

#[test]
fn h073_priority_cannot_be_raised() {
    let fixture = Fixture::new();
    for way in ["nice", "fifo", "deadline", "io"] {
        if need_root() {
            assert_eq!(fixture.control_probe("raise_priority.py", &[way]), "allowed", "{way}");
        }
        fixture.assert_refused_inside(&[("raise_priority.py", &[way])]);
    }
}

#[test]
fn h074_a_subreaper_cannot_keep_a_process_alive() {
    let fixture = Fixture::new();
    let file = format!("/workspace/work/{}-late", fixture.canary());
    let request = json!({"argv": ["python3", "scripts/daemon.py", "subreaper", file, "300"]});
    let answer = fixture.request(request).in_session("subreaper").run().expect_report();
    assert_eq!(
        answer.stdout(),
        "left
"
    );
    assert_eq!(fixture.host_pids_with(&file), [] as [i32; 0], "the daemon lives");
    let listing = fixture
        .request(json!({"command": "ls work/"}))
        .in_session("subreaper")
        .run()
        .expect_report();
    assert!(!listing.stdout().contains("late"), "{}", listing.describe());
}

#[test]
pub fn h075_setuid_programs_give_no_privileges() {
    let fixture = Fixture::new();
    if !need_root() {
        return;
    }
    // A program that belongs to root and has the setuid bit, shipped with the skill.
    let planted = fixture.skill_path("probe", "scripts/who");
    fs::copy("/usr/bin/id", &planted).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o4755)).unwrap();
    let (_, user) = ordinary_user();
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    let outside = fixture.control_shell(&format!("{} {} -u", user.join(" "), planted.display()));
    assert_eq!(outside, "0", "outside, the setuid bit is effective");
    let answer = fixture.run_shell(
        "id -u; scripts/who -u; id -ru; cp scripts/who work/who; chmod 4755 work/who; work/who -u; \
                           find / -xdev -perm -4000 -user root 2>/dev/null | head -n 3",
    );
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_ne!(lines[0], "0", "the script is an ordinary user");
    assert!(lines[1..4].iter().all(|id| *id == lines[0]), "{}", answer.describe());
    let su = fixture.run_shell("for p in su sudo mount ping passwd newgrp; do command -v $p >/dev/null && timeout 10 $p -c id </dev/null; done 2>&1 | grep -c uid=0");
    assert_eq!(su.stdout().trim(), "0", "{}", su.describe());
}

#[test]
pub fn h076_file_capabilities_are_ignored() {
    let fixture = Fixture::new();
    if !need_root() {
        return;
    }
    let planted = fixture.skill_path("probe", "scripts/capable");
    fs::copy("/usr/bin/grep", &planted).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
    // CAP_NET_RAW and CAP_DAC_READ_SEARCH, effective, in revision 2 of the kernel's format.
    let grant = format!(
        "import os; os.setxattr({:?}, 'security.capability', bytes.fromhex('010000020420000000000000' + '0' * 16))",
        planted.to_str().unwrap()
    );
    fixture.control_shell(&format!("python3 -c \"{}\"", grant.replace('"', "\\\"")));
    let (_, user) = ordinary_user();
    let outside = fixture.control_shell(&format!(
        "{} {} ^CapEff /proc/self/status",
        user.join(" "),
        planted.display()
    ));
    assert!(
        !outside.ends_with("0000000000000000") && !outside.is_empty(),
        "outside, the capabilities are effective: {outside}"
    );
    let inside = fixture.run_shell(
        "scripts/capable ^CapEff /proc/self/status; cp scripts/capable work/c; work/c ^CapEff /proc/self/status",
    );
    assert!(!inside.stdout().is_empty());
    assert!(
        inside.stdout().lines().all(|line| line.ends_with("0000000000000000")),
        "{}",
        inside.describe()
    );
}

#[test]
fn h077_the_user_and_group_cannot_be_changed() {
    let fixture = Fixture::new();
    for way in [
        "setuid",
        "setgid",
        "setresuid",
        "setreuid_unmapped",
        "setgroups",
        "setfsuid",
    ] {
        if need_root() {
            assert_eq!(fixture.control_probe("become.py", &[way]), "allowed", "{way}");
        }
        fixture.assert_refused_inside(&[("become.py", &[way])]);
    }
    let ids = fixture.run_shell("id -u; id -g; id -G; stat -c %u /workspace/out /workspace/skills/probe/SKILL.md");
    assert!(ids.stdout().lines().take(3).all(|id| id != "0"), "{}", ids.describe());
    // On the host, the files of the script belong to an unprivileged user.
    let request = json!({"command": "echo x > work/owned; chmod 6777 work/owned; mkdir work/dir"});
    fixture.request(request).in_session("owner").run().expect_report();
    let owned = crate::workspace::files_below(&fixture.path("state"))
        .into_iter()
        .find(|path| path.ends_with("work/owned"));
    if let Some(path) = owned {
        let meta = fs::metadata(&path).unwrap();
        assert!(
            meta.uid() != 0 || !rustix::process::geteuid().is_root(),
            "{} belongs to root on the host",
            path.display()
        );
    } else {
        // A workspace in a filesystem image has no path on the host.
        assert!(need_root());
    }
    let state = fs::metadata(fixture.path("state")).unwrap();
    let state_mode = state.permissions().mode() & 0o077;
    let subdirectories = fs::read_dir(fixture.path("state"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_type().unwrap().is_dir());
    for entry in subdirectories {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
        assert!(
            state_mode == 0 || mode == 0,
            "others can enter {}: {mode:o}",
            entry.path().display()
        );
    }
}

#[test]
pub fn h078_killing_skillbox_kills_the_script() {
    let fixture = Fixture::new();
    let token = format!("{}-token", fixture.canary());
    let mut child = fixture
        .request(json!({"argv": ["bash", "-c", "sleep 300 & sleep 300", token], "timeout": 300}))
        .spawn();
    let pids = fixture.wait_for("the script", || {
        let pids = fixture.host_pids_with(&token);
        let inside =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "bash");
        pids.iter().any(inside).then_some(pids)
    });
    assert!(!pids.is_empty());
    kill_and_reap(&mut child);
    fixture.wait_for_no_process_with(&token);
    assert_eq!(
        fixture.run_shell("echo fine").stdout(),
        "fine\n",
        "the next run cleans up and works"
    );
}

#[test]
fn a_session_counts_a_killed_run_and_stays_usable() {
    let fixture = Fixture::new();
    let token = format!("{}-token", fixture.canary());
    // The argument of `sleep` shows that the file before it exists: the workspace may be a file system that only the
    // sandbox has mounted.
    let seconds = format!("300.0{}", std::process::id());
    let line = format!("touch $RUN_DIR/left; sleep {seconds}; true");
    let mut child = fixture
        .request(json!({"argv": ["bash", "-c", line, token], "timeout": 300}))
        .in_session("killed")
        .spawn();
    let runs = || {
        let shown = fixture.command(&["session", "show", "killed", "--json"]).run();
        assert_eq!(shown.code, Some(0), "{}", shown.describe());
        shown["runs"].as_u64().unwrap()
    };
    fixture.wait_for("the file of the script", || {
        (!fixture.host_pids_with(&seconds).is_empty()).then_some(())
    });
    assert_eq!(runs(), 1, "a run counts while it is running");
    kill_and_reap(&mut child);
    assert_eq!(runs(), 1);
    let next = json!({"command": "ls /workspace/runs/*/left | wc -l"});
    assert_eq!(
        fixture
            .request(next)
            .in_session("killed")
            .run()
            .expect_report()
            .stdout(),
        "1\n"
    );
    assert_eq!(runs(), 2);
}

#[test]
fn h079_broken_programs_are_ordinary_errors() {
    let fixture = Fixture::new();
    let elf = fs::read("/usr/bin/true").unwrap();
    let mut foreign = elf.clone();
    foreign[18] = 0xf3; // The ELF machine number of RISC-V.
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
        let path = fixture.skill_path("probe", &format!("scripts/{name}"));
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (name, _) in files {
        for request in [
            json!({"argv": [format!("/workspace/skills/probe/scripts/{name}")], "timeout": 100}),
            json!({"command": format!("scripts/{name}"), "timeout": 100}),
        ] {
            let answer = fixture.request(request.clone()).run().expect_report();
            assert!(
                matches!(answer["ended_by"].as_str(), Some("exit" | "signal")),
                "{request}: {}",
                answer.describe()
            );
            let code = answer["exit_code"].as_i64();
            assert!(
                name == "empty" || matches!(code, Some(126 | 127) | None),
                "{request}: {code:?}"
            );
        }
    }
    // With `script`, skillbox reads the interpreter line itself, so that Windows line ends work.
    let answer = fixture.request(json!({"script": "scripts/crlf"})).run().expect_report();
    assert!(answer.stdout().contains("crlf"), "{}", answer.describe());
    assert_eq!(
        fixture
            .request(json!({"argv": ["no-such-program"]}))
            .run()
            .expect_report()["exit_code"],
        Value::from(127)
    );
    assert_eq!(
        fixture.request(json!({"argv": ["/usr"]})).run().expect_report()["exit_code"],
        Value::from(126)
    );
}
