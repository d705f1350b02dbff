//! 3.9: scripts that exhaust a resource.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Answer, Fixture, HostInventory, assert_within, cgroup_version, kill_and_reap, need};

/// Memory is limited by a control group; without one it is sampled at best.
fn need_memory_limit(fixture: &Fixture) -> bool {
    let answer = fixture.run_shell("true");
    need(
        answer.layer_status("memory") == "enforced",
        "a control group that limits memory",
    )
}

fn add_lean_profile(fixture: &Fixture) {
    fixture.add_profile(
        "lean",
        &[("memory", "96 MiB"), ("workspace", "16 MiB"), ("cpu", "60 s")],
    );
}

#[test]
pub fn h107_a_memory_bomb_is_reported_as_memory() {
    let fixture = Fixture::new();
    add_lean_profile(&fixture);
    if !need_memory_limit(&fixture) {
        return;
    }
    let eat = |way: &str| {
        let request = json!({"argv": ["python3", "scripts/eat_memory.py", way], "profile": "lean", "timeout": 100});
        fixture.request(request).run().expect_report()
    };
    for way in ["heap", "memfd"] {
        let answer = eat(way);
        assert_eq!(
            (&answer["ended_by"], answer.code, &answer["exit_code"]),
            (&json!("memory"), Some(137), &Value::Null),
            "{way}: {}",
            answer.describe()
        );
        assert!(
            answer["usage"]["peak_memory_bytes"]
                .as_u64()
                .is_none_or(|peak| peak <= 100 << 20),
            "{way}: {}",
            answer["usage"]
        );
    }
    // Filesystems with a size limit are full before the memory is.
    for way in ["file", "shm"] {
        let answer = eat(way);
        let is_full =
            answer.stdout().trim() == "ENOSPC" || answer["ended_by"] == "memory" || answer["ended_by"] == "disk";
        assert!(is_full, "{way}: {}", answer.describe());
    }
    let answer = eat("pipes");
    assert!(
        answer["exit_code"] == 1 || answer["ended_by"] == "memory",
        "pipes: {}",
        answer.describe()
    );
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
    // The limit kills the child and not the run, or the report names the limit.
    let request =
        json!({"command": "python3 scripts/eat_memory.py heap; echo survived $?", "profile": "lean", "timeout": 100});
    let answer = fixture.request(request).run().expect_report();
    assert!(
        answer["ended_by"] == "memory" || answer.stdout().contains("survived 137"),
        "{}",
        answer.describe()
    );
}

#[test]
fn h108_swap_does_not_extend_the_memory_limit() {
    let fixture = Fixture::new();
    if !need_memory_limit(&fixture) {
        return;
    }
    let token = format!("{}-swap", fixture.canary());
    let mut child = fixture
        .request(json!({"argv": ["bash", "-c", "sleep 300; true", token], "timeout": 300}))
        .spawn();
    let group = fixture.wait_for("the control group of the script", || {
        let pids = fixture.host_pids_with(&token);
        let groups = pids
            .iter()
            .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        groups
            .into_iter()
            .find(|groups| memory_group(groups) != memory_group(&own))
    });
    let path = memory_group(&group);
    let read = |file: &str| {
        fs::read_to_string(format!("{path}/{file}"))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    match cgroup_version() {
        Some(2) => assert_eq!(read("memory.swap.max"), "0", "{path}"),
        _ => {
            let both = read("memory.memsw.limit_in_bytes");
            assert!(
                both.is_empty() || both == read("memory.limit_in_bytes"),
                "{path}: {both}"
            );
            assert!(
                !both.is_empty() || read("memory.swappiness") == "0",
                "{path}: swap is not limited"
            );
        }
    }
    kill_and_reap(&mut child);
    fixture.wait_for_no_process_with(&token);
}

fn memory_group(groups: &str) -> String {
    let line = groups
        .lines()
        .find(|line| line.contains(":memory:") || line.starts_with("0::") && cgroup_version() == Some(2));
    let path = line.and_then(|line| line.splitn(3, ':').nth(2)).unwrap_or("/");
    match cgroup_version() {
        Some(2) => format!("/sys/fs/cgroup{path}"),
        _ => format!("/sys/fs/cgroup/memory{path}"),
    }
}

#[test]
pub fn h109_a_spinning_run_does_not_starve_others() {
    const SPINNERS: usize = 8;
    let fixture = Fixture::exclusive();
    let token = format!("{}-spinning", fixture.canary());
    let spin = format!("for i in $(seq {SPINNERS}); do (while :; do :; done) & done; wait");
    let mut spinner = fixture
        .request(json!({"argv": ["bash", "-c", spin, token], "timeout": 300}))
        .spawn();
    fixture.wait_for("every spinner", || {
        (fixture.host_pids_with(&token).len() > SPINNERS).then_some(())
    });
    let times = (0..5).map(|_| {
        let begin = Instant::now();
        assert_eq!(
            fixture.run_shell("echo fine").stdout(),
            "fine
"
        );
        begin.elapsed()
    });
    let slowest = times.max().unwrap();
    assert_within(slowest, Duration::from_secs(2), "a run beside a spinning one");
    assert!(
        fixture.host_pids_with(&token).len() > SPINNERS,
        "the spinners ended too early"
    );
    kill_and_reap(&mut spinner);
    fixture.wait_for_no_process_with(&token);
}

#[test]
pub fn h110_cpu_and_wall_limits_are_reported_separately() {
    let fixture = Fixture::new();
    fixture.add_profile("brief", &[("cpu", "1 s")]);
    let run = |command: &str, timeout: f64| {
        fixture
            .request(json!({"command": command, "profile": "brief", "timeout": timeout}))
            .run()
            .expect_report()
    };
    let cpu_ms = |answer: &Answer| answer["usage"]["cpu_ms"].as_u64().unwrap();
    let spinning = run("while :; do :; done", 100.0);
    assert_eq!(
        (&spinning["ended_by"], spinning.code, &spinning["timed_out"]),
        (&json!("cpu"), Some(137), &json!(false)),
        "{}",
        spinning.describe()
    );
    assert!((900..2500).contains(&cpu_ms(&spinning)), "{}", spinning["usage"]);
    // One CPU cannot use a second of CPU time within half a second.
    for (command, cpu_limit_ms) in [("sleep 30", 500), ("while :; do :; done", 1000)] {
        let timed_out = run(command, 0.5);
        assert_eq!(
            (&timed_out["ended_by"], timed_out.code, &timed_out["timed_out"]),
            (&json!("timeout"), Some(124), &json!(true)),
            "{command}: {}",
            timed_out.describe()
        );
        assert!(cpu_ms(&timed_out) < cpu_limit_ms, "{command}: {}", timed_out["usage"]);
    }
    // The CPU time of all processes counts together: four of them do not get four seconds.
    let shared = run(
        "for i in 1 2 3 4; do (timeout 100 bash -c 'while :; do :; done') & done; wait",
        100.0,
    );
    assert_eq!(shared["ended_by"], "cpu", "{}", shared.describe());
    assert!((900..2500).contains(&cpu_ms(&shared)), "{}", shared["usage"]);
}

#[test]
pub fn h111_a_full_disk_ends_the_script() {
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "16 MiB")]);
    let used_kib = || {
        let output = fixture.control_shell(&format!("du -sk {}", fixture.path_str("state")));
        output.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let before = used_kib();
    let growth_kib = || used_kib().saturating_sub(before);
    for fill in [
        "cat /dev/zero > work/fill",
        "fallocate -l 100M work/fill || dd if=/dev/zero of=work/dd bs=1M count=100",
        "for i in $(seq 3000); do head -c 65536 /dev/zero > work/$i || exit 9; done",
    ] {
        for session in [None, Some("full")] {
            let before_run = used_kib();
            let request = json!({"command": fill, "profile": "small", "timeout": 100});
            let answer = fixture
                .request(request)
                .in_optional_session(session)
                .run()
                .expect_report();
            let ended = answer["ended_by"].as_str().unwrap();
            assert!(
                ended == "disk" || (ended == "exit" && answer["exit_code"] != 0),
                "{fill}, {session:?}: {}",
                answer.describe()
            );
            if answer.layer_status("workspace_quota") == "enforced" {
                assert!(growth_kib() < 32 << 10, "{fill}, {session:?}: {} KiB", growth_kib());
            } else {
                // A quota that is checked periodically, as the report says, stops the script before it used much CPU time.
                let cpu_ms = answer["usage"]["cpu_ms"].as_u64().unwrap();
                assert!(cpu_ms < 1500, "{fill}, {session:?}: {}", answer.describe());
            }
            assert!(
                session.is_some() || used_kib().saturating_sub(before_run) < 4 << 10,
                "{} KiB are not removed",
                used_kib().saturating_sub(before_run)
            );
        }
        // The script of a session that is over its quota can still free the space.
        let clear = json!({"command": "rm -rf work/*; echo cleared", "profile": "small"});
        let cleared = fixture.request(clear).in_session("full").run().expect_report();
        assert_eq!(cleared.stdout(), "cleared\n", "{}", cleared.describe());
    }
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
    // Outside, nothing limits the same command.
    assert_eq!(
        fixture.control_shell(&format!(
            "head -c 20M /dev/zero > {} && echo written",
            fixture.path_str("scratch/fill")
        )),
        "written"
    );
}

#[test]
pub fn h112_inodes_run_out_inside_only() {
    let fixture = Fixture::new();
    fixture.add_profile("few", &[("workspace_inodes", "1000")]);
    for make in ["touch work/$i", "mkdir work/$i", "ln -s x work/$i"] {
        let command = format!("for i in $(seq 3000); do {make} || exit 9; done");
        let answer = fixture
            .request(json!({"command": command, "profile": "few", "timeout": 100}))
            .run()
            .expect_report();
        assert!(
            answer["exit_code"] == 9 || answer["ended_by"] == "disk",
            "{make}: {}",
            answer.describe()
        );
    }
    let control = format!(
        "cd {} && for i in $(seq 1500); do touch $i || exit 9; done; echo made",
        fixture.path_str("scratch")
    );
    assert_eq!(fixture.control_shell(&control), "made");
}

#[test]
pub fn h113_descriptors_run_out_inside_only() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.control_shell("ulimit -n 4000; python3 scripts/eat_descriptors.py file"),
        "many"
    );
    for way in ["file", "epoll", "inotify", "timer", "event", "memfd"] {
        assert_eq!(fixture.run_probe("eat_descriptors.py", &[way]), "few", "{way}");
    }
    let limit = fixture.run_shell("ulimit -n; ulimit -Hn; ulimit -n 4096 2>/dev/null && echo raised");
    assert_eq!(limit.stdout(), "1024\n1024\n");
}

#[test]
pub fn h114_ipc_is_limited_and_removed_afterwards() {
    let fixture = Fixture::new();
    assert_eq!(fixture.control_probe("leave_ipc.py", &["leave"]), "left");
    assert_eq!(fixture.control_probe("leave_ipc.py", &["look"]), "found");
    assert_eq!(fixture.control_probe("leave_ipc.py", &["clear"]), "cleared");
    assert_eq!(
        fixture.run_probe("leave_ipc.py", &["leave"]),
        "left",
        "the script has an IPC namespace of its own"
    );
    assert_eq!(fixture.run_probe("leave_ipc.py", &["look"]), "nothing");
    assert_eq!(
        fixture.control_probe("leave_ipc.py", &["look"]),
        "nothing",
        "nothing is left on the host"
    );
    // The number of descriptors bounds the number of sockets.
    let open_sockets = "import os,socket\nkept=[]\ntry:\n  while True: kept.append(socket.socketpair()); kept[-1][0].setblocking(False); kept[-1][0].send(b'x'*100000)\nexcept OSError: pass\nprint(len(kept))";
    let answer = fixture
        .request(json!({"argv": ["python3", "-c", open_sockets], "timeout": 100}))
        .run()
        .expect_report();
    assert!(
        answer["ended_by"] == "memory" || answer.stdout().trim().parse::<u32>().unwrap() <= 1024,
        "{}",
        answer.describe()
    );
}

fn assert_truncated(answer: &Answer, stream: &str, at_least: u64) {
    assert!(
        answer[&*format!("{stream}_bytes")].as_u64().unwrap() >= at_least,
        "{}",
        answer.describe()
    );
    assert_eq!(answer[&*format!("{stream}_truncated")], true);
    assert!(answer[stream].as_str().unwrap().len() <= 80 << 10);
}

#[test]
pub fn h115_a_flood_of_output_is_truncated_without_using_memory() {
    let fixture = Fixture::new();
    let idle_memory = fixture.run_shell("true").process.peak_memory;
    let run = |command: &str| {
        fixture
            .request(json!({"command": command, "timeout": 100}))
            .run()
            .expect_report()
    };
    let flood = run("head -c 300M /dev/zero | tr '\\0' x");
    assert_truncated(&flood, "stdout", 300 << 20);
    assert!(
        flood.process.peak_memory < idle_memory + (4 << 20),
        "{} instead of {idle_memory}",
        flood.process.peak_memory
    );
    assert_truncated(&run("head -c 20M /dev/zero | tr '\\0' '\\n' >&2"), "stderr", 20 << 20);
    let both = run("for i in $(seq 2000); do printf '%01000d' $i; printf '%01000d' $i >&2; done");
    assert_truncated(&both, "stdout", 2_000_000);
    assert_truncated(&both, "stderr", 2_000_000);
    // Both pipes are read together: neither blocks the other.
    let uneven = run("head -c 5M /dev/zero >&2; echo end; head -c 5M /dev/zero >&2");
    assert_eq!(uneven.stdout(), "end\n");
    let bytes = run("python3 -uc 'import os; [os.write(1, b\"y\") for _ in range(100000)]'");
    assert_truncated(&bytes, "stdout", 100_000);
    // Head and tail are both kept.
    let ends = run("echo the beginning; head -c 1M /dev/zero | tr '\\0' z; echo the end");
    assert!(ends.stdout().starts_with("the beginning\n") && ends.stdout().ends_with("the end\n"));
}

#[test]
pub fn h116_unread_input_does_not_block_the_run() {
    let fixture = Fixture::new();
    let stdin = "line\n".repeat(1_600_000);
    for command in ["true", "exec 0<&-; echo closed", "head -n 1", "sleep 0.2", "exit 3"] {
        let answer = fixture
            .request(json!({"command": command, "stdin": stdin, "timeout": 100}))
            .run()
            .expect_report();
        assert_eq!(answer["ended_by"], "exit", "{command}: {}", answer.describe());
        assert_within(answer.process.wall, Duration::from_secs(10), command);
    }
    let counted = fixture
        .request(json!({"command": "wc -c", "stdin": stdin, "timeout": 100}))
        .run()
        .expect_report();
    assert_eq!(counted.stdout().trim(), "8000000");
}

#[test]
pub fn h117_unusual_timeouts_are_met_or_refused() {
    let fixture = Fixture::new();
    let run = |timeout: Value| {
        fixture
            .request(json!({"argv": ["python3", "-c", "import time; time.sleep(30)"], "timeout": timeout}))
            .run()
    };
    for timeout in [
        json!(0),
        json!(-1),
        json!(-0.5),
        json!(1e300),
        json!(3601),
        json!("ten"),
    ] {
        let answer = run(timeout.clone());
        let (code, field) = answer.expect_refusal();
        assert!(
            matches!(code, "invalid_request" | "limit_exceeded"),
            "{timeout}: {code}"
        );
        assert_eq!((field, answer.code), (Some("timeout"), Some(125)), "{timeout}");
    }
    for timeout in [0.1, 0.01, 0.001] {
        let answer = run(json!(timeout)).expect_report();
        assert_eq!(
            (&answer["ended_by"], &answer["timed_out"], answer.code),
            (&json!("timeout"), &json!(true), Some(124)),
            "{timeout}"
        );
        let duration = Duration::from_millis(answer["duration_ms"].as_u64().unwrap());
        assert_within(duration, Duration::from_millis(1200), "the reported duration");
        assert_within(answer.process.wall, Duration::from_secs(2), "the whole command");
    }
}

#[test]
pub fn h118_concurrent_runs_do_not_affect_each_other() {
    const OUT_OF_TIME: &str = "echo $WORD; (sleep 300 & sleep 300 & sleep 300) ; true";
    let fixture = Fixture::exclusive();
    fixture.add_profile(
        "few",
        &[
            ("pids", "24"),
            ("memory", "96 MiB"),
            ("workspace", "8 MiB"),
            ("cpu", "20 s"),
        ],
    );
    let before = HostInventory::take();
    let mix = [
        ("echo $WORD > out/x; cat out/x", Some(0)),
        ("cat /dev/zero > work/fill 2>/dev/null; echo $WORD", Some(0)),
        ("head -c 1M /dev/zero; echo; echo $WORD", Some(0)),
        ("sleep 300 & echo $WORD", Some(0)),
        ("echo $WORD; exit 7", Some(7)),
        ("mkfifo out/f; ln -s / out/l; echo $WORD", Some(0)),
        (OUT_OF_TIME, None),
        ("echo $WORD > /dev/shm/x; cat /dev/shm/x; kill -9 $$", None),
    ];
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let (fixture, mix) = (&fixture, &mix);
            scope.spawn(move || {
                for (at, (command, code)) in mix.iter().enumerate().skip(worker % 4).step_by(2) {
                    let word = format!("word-{worker}-{at}");
                    let request = json!({"command": command, "env": {"WORD": word}, "profile": "few", "timeout": if *command == OUT_OF_TIME { 5 } else { 100 }, "output_files": ["out/*"]});
                    let answer = fixture.request(request).run().expect_report();
                    assert!(answer.stdout().contains(&word), "{command}: {}", answer.describe());
                    assert_eq!(answer["exit_code"], json!(code), "{command}: {}", answer.describe());
                }
            });
        }
    });
    let growth = before.growth_after_cleanup();
    assert!(growth.is_empty(), "left behind: {growth:#?}");
}

#[test]
fn h119_a_long_sequence_of_runs_leaves_nothing() {
    let fixture = Fixture::exclusive();
    fixture.run_shell("true");
    let count = |path: &str| {
        fixture
            .control_shell(&format!("find {path} 2>/dev/null | wc -l"))
            .parse::<usize>()
            .unwrap()
    };
    let state = count(&fixture.path_str("state"));
    let before = HostInventory::take();
    for _ in 0..60 {
        assert_eq!(fixture.run_shell("echo x > out/x; mkdir work/d")["exit_code"], 0);
    }
    let growth = before.growth_after_cleanup();
    assert!(growth.is_empty(), "left behind: {growth:#?}");
    let later = count(&fixture.path_str("state"));
    assert!(
        later <= state + 2,
        "the state directory grew from {state} to {later} entries"
    );
    assert_eq!(count(&fixture.path_str("tmp")), 1, "only the directory itself");
}

#[test]
fn h120_denied_calls_do_not_flood_the_log() {
    let fixture = Fixture::exclusive();
    let log = || {
        fixture
            .control_shell("dmesg 2>/dev/null | wc -l")
            .parse::<u64>()
            .unwrap_or(0)
    };
    let before = log();
    let answer = fixture
        .request(json!({"argv": ["python3", "scripts/denied_calls.py", "1000000"], "timeout": 110}))
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "done\n");
    assert!(log() < before + 50, "{} more lines in the kernel log", log() - before);
    assert!(answer.process.stderr.len() < 4096);
}
