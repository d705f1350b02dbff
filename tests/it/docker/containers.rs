//! What a run in a container is: its result, its hardening as the daemon records it, its walls.

use std::time::Duration;

use serde_json::{Value, json};

use super::{daemon, scene};
use crate::lab::reap;
use crate::workspace::root;

const FIB: [&str; 6] = [
    "run",
    "python-math",
    "--output",
    "out/*.txt",
    "--",
    "python3 scripts/fib.py 10 > out/fib.txt",
];

#[test]
fn the_result_equals_the_local_one() {
    let Some(scene) = scene() else { return };
    let ask = |executor: &str| {
        let answer = scene
            .tell_bare(&FIB)
            .with(&["--json", "--executor", executor])
            .at(root())
            .go();
        let mut report = answer.reported().json().clone();
        let fields = report.as_object_mut().unwrap();
        for differs in ["executor", "run_id", "duration_ms", "usage", "enforcement"] {
            assert!(fields.remove(differs).is_some(), "{differs} is missing");
        }
        report
    };
    let (local, docker) = (ask("local"), ask("docker"));
    assert_eq!(local, docker);
    assert_eq!(
        docker["output_files"][0]["content"],
        "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n"
    );
}

#[test]
fn the_daemon_records_every_hardening() {
    let Some(scene) = scene() else { return };
    scene.profile_text("slow", "extends: default\nlimits:\n  cpu_quota_millis: 500\n");
    let mut child = scene.ask(json!({"command": "sleep 30", "profile": "slow"})).begin();
    let id = scene.wait_for("a container", Duration::from_secs(20), || {
        daemon(&scene).containers().pop()
    });
    let inspected = scene.wait_for("a running container", Duration::from_secs(20), || {
        let all: Value = serde_json::from_str(&daemon(&scene).client(&["inspect", &id])).ok()?;
        (all[0]["State"]["Running"] == true).then(|| all[0].clone())
    });
    let host = &inspected["HostConfig"];
    let expected = [
        ("NetworkMode", json!("none")),
        ("ReadonlyRootfs", json!(true)),
        ("CapDrop", json!(["ALL"])),
        ("Privileged", json!(false)),
        ("Init", json!(false)),
        ("IpcMode", json!("private")),
        ("CgroupnsMode", json!("private")),
        ("Memory", json!(1 << 30)),
        ("MemorySwap", json!(1 << 30)),
        ("NanoCpus", json!(500_000_000)),
        ("PidsLimit", json!(257)),
        ("ShmSize", json!(64 << 20)),
        ("LogConfig", json!({"Type": "none", "Config": {}})),
        ("Binds", json!(null)),
    ];
    for (key, value) in expected {
        assert_eq!(host[key], value, "{key}");
        println!("{key:<16} {value}");
    }
    let options = host["SecurityOpt"].as_array().unwrap();
    assert!(options.contains(&json!("no-new-privileges=true")), "{options:?}");
    assert!(
        options
            .iter()
            .any(|option| option.as_str().unwrap().starts_with("seccomp={"))
    );
    for (place, words) in [
        ("/workspace", "size=536870912,nr_inodes=100000"),
        ("/tmp", "size=134217728"),
    ] {
        let told = host["Tmpfs"][place].as_str().unwrap();
        assert!(told.contains(words) && told.contains("nosuid,nodev"), "{place}: {told}");
        println!("Tmpfs            {place} {told}");
    }
    let limits: Vec<String> = host["Ulimits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["Name"].to_string())
        .collect();
    println!("Ulimits          {}", limits.join(" "));
    assert!(limits.len() >= 9);
    let config = &inspected["Config"];
    assert_eq!(
        (&config["User"], &config["Entrypoint"]),
        (&json!("1000:1000"), &json!(["/skillbox-runner"]))
    );
    assert!(config["Labels"]["skillbox"].is_string() && config["Labels"]["skillbox.owner"].is_string());
    // Pid 1 is the runner, as the daemon's own view of the processes says.
    let top = daemon(&scene).client(&["top", &id, "-o", "pid,args"]);
    assert!(
        top.lines().nth(1).is_some_and(|line| line.contains("/skillbox-runner")),
        "{top}"
    );
    child.kill().unwrap();
    reap(&mut child);
    daemon(&scene).refuse_containers();
}

#[test]
fn two_sessions_do_not_see_each_other() {
    let Some(scene) = scene() else { return };
    let secret = "echo secret-of-a > work/a; echo secret-of-a > /tmp/a; echo secret-of-a > /dev/shm/a; \
                  python3 -c \"import socket,time; s=socket.socket(socket.AF_UNIX); s.bind('\\0meet'); s.listen(); time.sleep(6)\"";
    let mut first = scene.ask(json!({"command": secret})).session("a").begin();
    scene.wait_for("a container", Duration::from_secs(20), || {
        daemon(&scene).containers().pop()
    });
    std::thread::sleep(Duration::from_secs(1));
    let search = "grep -rs secret-of-a / --exclude-dir=proc --exclude-dir=sys; ls /proc | grep -cE '^[0-9]+$'; \
                  python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0meet'); print('met')\" 2>/dev/null; \
                  kill -9 -1 2>/dev/null; exit 0";
    let answer = scene
        .ask(json!({"command": search, "timeout": 20}))
        .session("b")
        .go()
        .reported();
    assert!(!answer.stdout().contains("secret-of-a"), "{}", answer.told());
    assert!(!answer.stdout().contains("met"), "{}", answer.told());
    let seen: u32 = answer.stdout().lines().next().unwrap().trim().parse().unwrap();
    assert!(seen <= 6, "{seen} processes are visible");
    // The first run lives through it, and its session keeps what it wrote.
    let status = first.wait().unwrap();
    assert!(status.success(), "{status}");
    let kept = scene
        .ask(json!({"command": "cat work/a; ls /tmp /dev/shm"}))
        .session("a")
        .go()
        .reported();
    assert_eq!(kept.stdout(), "secret-of-a\n/dev/shm:\n\n/tmp:\n");
    daemon(&scene).refuse_containers();
}
