//! A run in a container: its report, its hardening as the daemon records it, and its isolation.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::{daemon, docker_fixture};
use crate::harness::kill_and_reap;
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
fn the_report_equals_that_of_a_local_run() {
    let Some(fixture) = docker_fixture() else { return };
    let report_of = |executor: &str| {
        let answer = fixture
            .bare_command(&FIB)
            .with_args(&["--json", "--executor", executor])
            .in_dir(root())
            .run();
        let mut report = answer.expect_report().json().clone();
        let fields = report.as_object_mut().unwrap();
        for differs in ["executor", "run_id", "duration_ms", "usage", "enforcement"] {
            assert!(fields.remove(differs).is_some(), "{differs} is missing");
        }
        report
    };
    let (local, docker) = (report_of("local"), report_of("docker"));
    assert_eq!(local, docker);
    assert_eq!(
        docker["output_files"][0]["content"],
        "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n"
    );
}

#[test]
fn the_daemon_records_every_hardening_option() {
    let Some(fixture) = docker_fixture() else { return };
    fixture.add_profile_yaml("slow", "extends: default\nlimits:\n  cpu_quota_millis: 500\n");
    let mut child = fixture
        .request(json!({"command": "sleep 300", "profile": "slow", "timeout": 300}))
        .spawn();
    let id = fixture.wait_for("a container", || daemon(&fixture).containers().pop());
    let inspected = fixture.wait_for("a running container", || {
        let all: Value = serde_json::from_str(&daemon(&fixture).run_client(&["inspect", &id])).ok()?;
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
        let options = host["Tmpfs"][place].as_str().unwrap();
        assert!(
            options.contains(words) && options.contains("nosuid,nodev"),
            "{place}: {options}"
        );
        println!("Tmpfs            {place} {options}");
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
    // The daemon's list of processes shows that pid 1 is the runner.
    let top = daemon(&fixture).run_client(&["top", &id, "-o", "pid,args"]);
    assert!(
        top.lines().nth(1).is_some_and(|line| line.contains("/skillbox-runner")),
        "{top}"
    );
    child.kill().unwrap();
    kill_and_reap(&mut child);
    daemon(&fixture).wait_for_no_containers();
}

#[test]
fn two_sessions_are_isolated_from_each_other() {
    let Some(fixture) = docker_fixture() else { return };
    let secret = "echo secret-of-a > work/a; echo secret-of-a > /tmp/a; echo secret-of-a > /dev/shm/a; \
                  python3 -c \"import socket,time; s=socket.socket(socket.AF_UNIX); s.bind('\\0meet'); s.listen(); print('listening', flush=True); time.sleep(20)\"";
    let mut first = fixture
        .command(&["run", "probe", "--session", "a", "--", secret])
        .spawn();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "listening");
    let search = "grep -rs secret-of-a / --exclude-dir=proc --exclude-dir=sys; ls /proc | grep -cE '^[0-9]+$'; \
                  python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0meet'); print('met')\" 2>/dev/null; \
                  kill -9 -1 2>/dev/null; exit 0";
    let answer = fixture
        .request(json!({"command": search, "timeout": 100}))
        .in_session("b")
        .run()
        .expect_report();
    assert!(!answer.stdout().contains("secret-of-a"), "{}", answer.describe());
    assert!(!answer.stdout().contains("met"), "{}", answer.describe());
    let seen: u32 = answer.stdout().lines().next().unwrap().trim().parse().unwrap();
    assert!(seen <= 6, "{seen} processes are visible");
    // The first run is not affected, and its session keeps its files.
    let status = first.wait().unwrap();
    assert!(status.success(), "{status}");
    let kept = fixture
        .request(json!({"command": "cat work/a; ls /tmp /dev/shm"}))
        .in_session("a")
        .run()
        .expect_report();
    assert_eq!(kept.stdout(), "secret-of-a\n/dev/shm:\n\n/tmp:\n");
    daemon(&fixture).wait_for_no_containers();
}
