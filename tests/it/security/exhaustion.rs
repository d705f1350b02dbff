//! 3.9: scripts that take all they can get.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{Answer, Ledger, Scene, cgroup_version, need};

/// Memory limits are the control group's; without one they are sampled at best.
fn memory_is_limited(scene: &Scene) -> bool {
    let answer = scene.sh("true");
    need(
        answer.layer("memory") == "enforced",
        "a control group that limits memory",
    )
}

fn small_memory(scene: &Scene) {
    scene.profile(
        "lean",
        &[("memory", "96 MiB"), ("workspace", "16 MiB"), ("cpu", "60 s")],
    );
}

#[test]
pub fn h107_a_memory_bomb_ends_as_memory() {
    let scene = Scene::new();
    small_memory(&scene);
    if !memory_is_limited(&scene) {
        return;
    }
    let eat = |way: &str| {
        let request = json!({"argv": ["python3", "scripts/eat_memory.py", way], "profile": "lean", "timeout": 30});
        scene.ask(request).go().reported()
    };
    for way in ["heap", "memfd"] {
        let answer = eat(way);
        assert_eq!(
            (&answer["ended_by"], answer.code, &answer["exit_code"]),
            (&json!("memory"), Some(137), &Value::Null),
            "{way}: {}",
            answer.told()
        );
        assert!(
            answer["usage"]["peak_memory_bytes"]
                .as_u64()
                .is_none_or(|peak| peak <= 100 << 20),
            "{way}: {}",
            answer["usage"]
        );
    }
    // Places with a size of their own are full before the memory is.
    for way in ["file", "shm"] {
        let answer = eat(way);
        let full = answer.stdout().trim() == "ENOSPC" || answer["ended_by"] == "memory" || answer["ended_by"] == "disk";
        assert!(full, "{way}: {}", answer.told());
    }
    let answer = eat("pipes");
    assert!(
        answer["exit_code"] == 1 || answer["ended_by"] == "memory",
        "pipes: {}",
        answer.told()
    );
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
    // A child that dies by the limit does not end the run, and the report says what happened to it.
    let request =
        json!({"command": "python3 scripts/eat_memory.py heap; echo survived $?", "profile": "lean", "timeout": 30});
    let answer = scene.ask(request).go().reported();
    assert!(
        answer["ended_by"] == "memory" || answer.stdout().contains("survived 137"),
        "{}",
        answer.told()
    );
}

#[test]
fn h108_swap_does_not_stretch_the_memory() {
    let scene = Scene::new();
    if !memory_is_limited(&scene) {
        return;
    }
    let token = format!("{}-swap", scene.canary());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            scene
                .ask(json!({"argv": ["bash", "-c", "sleep 1; true", token]}))
                .go()
                .reported()
        });
        let group = scene.wait_for("the script's control group", Duration::from_secs(10), || {
            let pids = scene.host_pids_with(&token);
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
                    "{path}: swap is not bounded"
                );
            }
        }
        run.join().unwrap();
    });
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
pub fn h109_a_spinning_run_leaves_room_for_others() {
    let scene = Scene::alone();
    let spin = json!({"command": "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait", "timeout": 4});
    let worst = std::thread::scope(|scope| {
        let spinner = scope.spawn(|| scene.ask(spin).go().reported());
        std::thread::sleep(Duration::from_millis(600));
        let times = (0..5).map(|_| {
            let begin = Instant::now();
            assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
            begin.elapsed()
        });
        let worst = times.max().unwrap();
        assert!(matches!(
            spinner.join().unwrap()["ended_by"].as_str(),
            Some("timeout" | "cpu")
        ));
        worst
    });
    assert!(worst < Duration::from_secs(2), "a neighbour took {worst:?}");
}

#[test]
pub fn h110_cpu_time_and_wall_time_are_told_apart() {
    let scene = Scene::new();
    scene.profile("brief", &[("cpu", "1 s")]);
    let ask = |command: &str, timeout: f64| {
        scene
            .ask(json!({"command": command, "profile": "brief", "timeout": timeout}))
            .go()
            .reported()
    };
    let spun = ask("while :; do :; done", 30.0);
    assert_eq!(
        (&spun["ended_by"], spun.code, &spun["timed_out"]),
        (&json!("cpu"), Some(137), &json!(false)),
        "{}",
        spun.told()
    );
    assert!(spun.finished.wall < Duration::from_secs(5), "{:?}", spun.finished.wall);
    let slept = ask("sleep 30", 0.5);
    assert_eq!(
        (&slept["ended_by"], slept.code, &slept["timed_out"]),
        (&json!("timeout"), Some(124), &json!(true))
    );
    // The time of many processes counts together.
    let shared = ask(
        "for i in 1 2 3 4; do (timeout 20 bash -c 'while :; do :; done') & done; wait",
        30.0,
    );
    assert_eq!(shared["ended_by"], "cpu", "{}", shared.told());
    assert!(
        shared.finished.wall < Duration::from_secs(6),
        "{:?}",
        shared.finished.wall
    );
    assert!(slept["usage"]["cpu_ms"].as_u64().unwrap() < 500);
}

#[test]
pub fn h111_a_full_disk_is_the_scripts_own() {
    let scene = Scene::new();
    scene.profile("small", &[("workspace", "16 MiB")]);
    let used = || {
        let told = scene.control_sh(&format!("du -sk {}", scene.text("state")));
        told.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let before = used();
    for fill in [
        "cat /dev/zero > work/fill",
        "fallocate -l 100M work/fill || dd if=/dev/zero of=work/dd bs=1M count=100",
        "for i in $(seq 3000); do head -c 8192 /dev/zero > work/$i || exit 9; done",
    ] {
        for session in [None, Some("full")] {
            let request = json!({"command": fill, "profile": "small", "timeout": 30});
            let answer = scene.ask(request).in_session(session).go().reported();
            let ended = answer["ended_by"].as_str().unwrap();
            assert!(
                ended == "disk" || (ended == "exit" && answer["exit_code"] != 0),
                "{fill}, {session:?}: {}",
                answer.told()
            );
            // Where the quota is watched and not fenced, the report says so, and the overshoot is short.
            let room = if answer.layer("workspace_quota") == "enforced" {
                32
            } else {
                256
            };
            assert!(
                used() - before < room << 10,
                "{fill}, {session:?}: {} KiB",
                used() - before
            );
            assert!(session.is_some() || used() - before < 4 << 10, "something stays");
        }
        // A session that is over its quota can still be cleared by its own script.
        let clear = json!({"command": "rm -rf work/*; echo cleared", "profile": "small"});
        let cleared = scene.ask(clear).session("full").go().reported();
        assert_eq!(cleared.stdout(), "cleared\n", "{}", cleared.told());
    }
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
    // Outside nothing stops the same command.
    assert_eq!(
        scene.control_sh(&format!(
            "head -c 20M /dev/zero > {} && echo written",
            scene.text("scratch/fill")
        )),
        "written"
    );
}

#[test]
pub fn h112_inodes_run_out_inside_only() {
    let scene = Scene::new();
    scene.profile("few", &[("workspace_inodes", "1000")]);
    for make in ["touch work/$i", "mkdir work/$i", "ln -s x work/$i"] {
        let command = format!("for i in $(seq 3000); do {make} || exit 9; done");
        let answer = scene
            .ask(json!({"command": command, "profile": "few", "timeout": 30}))
            .go()
            .reported();
        assert!(
            answer["exit_code"] == 9 || answer["ended_by"] == "disk",
            "{make}: {}",
            answer.told()
        );
    }
    let control = format!(
        "cd {} && for i in $(seq 1500); do touch $i || exit 9; done; echo made",
        scene.text("scratch")
    );
    assert_eq!(scene.control_sh(&control), "made");
}

#[test]
pub fn h113_descriptors_run_out_inside_only() {
    let scene = Scene::new();
    assert_eq!(
        scene.control_sh("ulimit -n 4000; python3 scripts/eat_descriptors.py file"),
        "many"
    );
    for way in ["file", "epoll", "inotify", "timer", "event", "memfd"] {
        assert_eq!(scene.probe("eat_descriptors.py", &[way]), "few", "{way}");
    }
    let limit = scene.sh("ulimit -n; ulimit -Hn; ulimit -n 4096 2>/dev/null && echo raised");
    assert_eq!(limit.stdout(), "1024\n1024\n");
}

#[test]
pub fn h114_ipc_is_limited_and_gone_afterwards() {
    let scene = Scene::new();
    assert_eq!(scene.control("leave_ipc.py", &["leave"]), "left");
    assert_eq!(scene.control("leave_ipc.py", &["look"]), "found");
    assert_eq!(scene.control("leave_ipc.py", &["clear"]), "cleared");
    assert_eq!(
        scene.probe("leave_ipc.py", &["leave"]),
        "left",
        "the script has room of its own"
    );
    assert_eq!(scene.probe("leave_ipc.py", &["look"]), "nothing");
    assert_eq!(
        scene.control("leave_ipc.py", &["look"]),
        "nothing",
        "nothing of it is on the host"
    );
    // Hoarding pipes and sockets is bounded by the number of descriptors.
    let hoard = "import os,socket\nkept=[]\ntry:\n  while True: kept.append(socket.socketpair()); kept[-1][0].setblocking(False); kept[-1][0].send(b'x'*100000)\nexcept OSError: pass\nprint(len(kept))";
    let answer = scene
        .ask(json!({"argv": ["python3", "-c", hoard], "timeout": 20}))
        .go()
        .reported();
    assert!(
        answer["ended_by"] == "memory" || answer.stdout().trim().parse::<u32>().unwrap() <= 1024,
        "{}",
        answer.told()
    );
}

fn assert_flood(answer: &Answer, stream: &str, at_least: u64) {
    assert!(
        answer[&*format!("{stream}_bytes")].as_u64().unwrap() >= at_least,
        "{}",
        answer.told()
    );
    assert_eq!(answer[&*format!("{stream}_truncated")], true);
    assert!(answer[stream].as_str().unwrap().len() <= 80 << 10);
}

#[test]
pub fn h115_a_flood_of_output_is_cut_and_costs_no_memory() {
    let scene = Scene::new();
    let quiet = scene.sh("true").finished.peak_memory;
    let ask = |command: &str| scene.ask(json!({"command": command, "timeout": 40})).go().reported();
    let flood = ask("head -c 300M /dev/zero | tr '\\0' x");
    assert_flood(&flood, "stdout", 300 << 20);
    assert!(
        flood.finished.peak_memory < quiet + (4 << 20),
        "{} instead of {quiet}",
        flood.finished.peak_memory
    );
    assert_flood(&ask("head -c 20M /dev/zero | tr '\\0' '\\n' >&2"), "stderr", 20 << 20);
    let both = ask("for i in $(seq 2000); do printf '%01000d' $i; printf '%01000d' $i >&2; done");
    assert_flood(&both, "stdout", 2_000_000);
    assert_flood(&both, "stderr", 2_000_000);
    // The two pipes are read together: neither blocks the other.
    let uneven = ask("head -c 5M /dev/zero >&2; echo end; head -c 5M /dev/zero >&2");
    assert_eq!(uneven.stdout(), "end\n");
    let bytes = ask("python3 -uc 'import os; [os.write(1, b\"y\") for _ in range(100000)]'");
    assert_flood(&bytes, "stdout", 100_000);
    // Head and tail are both kept.
    let ends = ask("echo the beginning; head -c 1M /dev/zero | tr '\\0' z; echo the end");
    assert!(ends.stdout().starts_with("the beginning\n") && ends.stdout().ends_with("the end\n"));
}

#[test]
pub fn h116_unread_input_hangs_nobody() {
    let scene = Scene::new();
    let stdin = "line\n".repeat(1_600_000);
    for command in ["true", "exec 0<&-; echo closed", "head -n 1", "sleep 0.2", "exit 3"] {
        let answer = scene
            .ask(json!({"command": command, "stdin": stdin, "timeout": 20}))
            .go()
            .reported();
        assert_eq!(answer["ended_by"], "exit", "{command}: {}", answer.told());
        assert!(
            answer.finished.wall < Duration::from_secs(10),
            "{command}: {:?}",
            answer.finished.wall
        );
    }
    let counted = scene
        .ask(json!({"command": "wc -c", "stdin": stdin, "timeout": 20}))
        .go()
        .reported();
    assert_eq!(counted.stdout().trim(), "8000000");
}

#[test]
pub fn h117_odd_deadlines_are_met_or_refused() {
    let scene = Scene::new();
    let ask = |timeout: Value| {
        scene
            .ask(json!({"argv": ["python3", "-c", "import time; time.sleep(30)"], "timeout": timeout}))
            .go()
    };
    for timeout in [
        json!(0),
        json!(-1),
        json!(-0.5),
        json!(1e300),
        json!(3601),
        json!("ten"),
    ] {
        let answer = ask(timeout.clone());
        let (code, field) = answer.refused();
        assert!(
            matches!(code, "invalid_request" | "limit_exceeded"),
            "{timeout}: {code}"
        );
        assert_eq!((field, answer.code), (Some("timeout"), Some(125)), "{timeout}");
    }
    for timeout in [0.1, 0.01, 0.001] {
        let answer = ask(json!(timeout)).reported();
        assert_eq!(
            (&answer["ended_by"], &answer["timed_out"], answer.code),
            (&json!("timeout"), &json!(true), Some(124)),
            "{timeout}"
        );
        let took = answer["duration_ms"].as_u64().unwrap();
        assert!(
            took < 1200 && answer.finished.wall < Duration::from_secs(2),
            "{timeout}: {took} ms, {:?}",
            answer.finished.wall
        );
    }
}

#[test]
pub fn h118_many_runs_at_once_do_not_disturb_each_other() {
    let scene = Scene::alone();
    scene.profile(
        "few",
        &[
            ("pids", "24"),
            ("memory", "96 MiB"),
            ("workspace", "8 MiB"),
            ("cpu", "20 s"),
        ],
    );
    let before = Ledger::now();
    let mix = [
        ("echo $WORD > out/x; cat out/x", 0),
        ("cat /dev/zero > work/fill 2>/dev/null; echo $WORD", 0),
        ("head -c 1M /dev/zero; echo; echo $WORD", 0),
        ("sleep 30 & echo $WORD", 0),
        ("echo $WORD; exit 7", 7),
        ("mkfifo out/f; ln -s / out/l; echo $WORD", 0),
        ("echo $WORD; (sleep 9 & sleep 9 & sleep 9) ; true", -1),
        ("echo $WORD > /dev/shm/x; cat /dev/shm/x; kill -9 $$", -9),
    ];
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let (scene, mix) = (&scene, &mix);
            scope.spawn(move || {
                for (at, (command, code)) in mix.iter().enumerate().skip(worker % 4).step_by(2) {
                    let word = format!("word-{worker}-{at}");
                    let request = json!({"command": command, "env": {"WORD": word}, "profile": "few", "timeout": if *code == -1 { 1 } else { 30 }, "output_files": ["out/*"]});
                    let answer = scene.ask(request).go().reported();
                    assert!(answer.stdout().contains(&word), "{command}: {}", answer.told());
                    let expected = match *code {
                        -1 => Value::Null,
                        -9 => Value::Null,
                        code => json!(code),
                    };
                    assert_eq!(answer["exit_code"], expected, "{command}: {}", answer.told());
                }
            });
        }
    });
    let growth = before.growth();
    assert!(growth.is_empty(), "left behind: {growth:#?}");
}

#[test]
fn h119_a_long_sequence_of_runs_leaves_nothing() {
    let scene = Scene::alone();
    scene.sh("true");
    let count = |path: &str| {
        scene
            .control_sh(&format!("find {path} 2>/dev/null | wc -l"))
            .parse::<usize>()
            .unwrap()
    };
    let state = count(&scene.text("state"));
    let before = Ledger::now();
    for _ in 0..60 {
        assert_eq!(scene.sh("echo x > out/x; mkdir work/d")["exit_code"], 0);
    }
    let growth = before.growth();
    assert!(growth.is_empty(), "left behind: {growth:#?}");
    let later = count(&scene.text("state"));
    assert!(
        later <= state + 2,
        "the state directory grew from {state} to {later} entries"
    );
    assert_eq!(count(&scene.text("tmp")), 1, "only the directory itself");
}

#[test]
fn h120_denied_calls_do_not_flood_the_log() {
    let scene = Scene::alone();
    let log = || {
        scene
            .control_sh("dmesg 2>/dev/null | wc -l")
            .parse::<u64>()
            .unwrap_or(0)
    };
    let before = log();
    let answer = scene
        .ask(json!({"argv": ["python3", "scripts/denied_calls.py", "1000000"], "timeout": 60}))
        .go()
        .reported();
    assert_eq!(answer.stdout(), "done\n");
    assert!(log() < before + 50, "{} lines more in the kernel's log", log() - before);
    assert!(answer.finished.stderr.len() < 4096);
}
