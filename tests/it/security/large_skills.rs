//! Skills that are too large to be read, and clients that do not wait for it.

use std::fs::File;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Fixture, HttpServer, wait_until};

/// A skill with a file that has only a hole.
fn add_sparse_skill(fixture: &Fixture, bytes: u64) {
    fixture.add_skill("sparse", &[("run.sh", "echo ran\n")]);
    File::create(fixture.skill_path("sparse", "hole"))
        .unwrap()
        .set_len(bytes)
        .unwrap();
}

#[test]
fn h155_a_skill_over_the_limits_is_refused_with_the_setting() {
    let fixture = Fixture::new();
    add_sparse_skill(&fixture, 200 << 30);
    let request = || json!({"skill": "sparse", "argv": ["sh", "run.sh"]});
    let answer = fixture.request(request()).run();
    let (code, _) = answer.expect_refusal();
    assert_eq!(code, "skill_unreadable", "{}", answer.describe());
    assert!(answer.mentions("max_skill_file_bytes"), "{}", answer.describe());
    let info = fixture.command(&["info", "sparse", "--json"]).run();
    assert!(
        info.is_refused() && info.mentions("max_skill_file_bytes"),
        "{}",
        info.describe()
    );
    // The catalog reads only the metadata, so the skill and its neighbours are listed.
    let list = fixture.command(&["list", "--json"]).run();
    assert!(list.mentions("sparse") && list.mentions("probe"), "{}", list.describe());
    // Within the limits, the same skill runs.
    File::create(fixture.skill_path("sparse", "hole"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    assert_eq!(fixture.request(request()).run().expect_report().stdout(), "ran\n");
    let limited = fixture.request(request()).with_args(&["--max-skill-files", "2"]).run();
    assert!(limited.mentions("max_skill_files"), "{}", limited.describe());
}

#[test]
fn h156_reading_stops_when_its_client_disconnects() {
    let fixture = Fixture::new();
    add_sparse_skill(&fixture, 1 << 40);
    let skills = fixture.path_str("skills");
    let limit = (1_u64 << 41).to_string();
    let arguments = [
        "--skills",
        &skills,
        "--max-skill-bytes",
        &limit,
        "--max-skill-file-bytes",
        &limit,
    ];
    let (server, _) = HttpServer::start(&arguments, &[]);
    let run = json!({"skill": "sparse", "command": "true"}).to_string();
    let json_type = [("Content-Type", "application/json")];
    for (method, path, headers, body) in [
        ("GET", "/v1/skills/sparse", &[][..], ""),
        ("POST", "/v1/runs?wait=100", &json_type[..], run.as_str()),
    ] {
        let before = cpu_ticks(server.pid());
        let client = server.send(method, path, headers, body.as_bytes());
        wait_until("the server reads the skill", || cpu_ticks(server.pid()) > before + 20);
        drop(client);
        wait_until("the server is idle", || {
            let ticks = cpu_ticks(server.pid());
            std::thread::sleep(Duration::from_millis(500));
            cpu_ticks(server.pid()) < ticks + 5
        });
    }
}

/// The CPU time of a process, in units of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
