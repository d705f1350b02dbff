//! `skillbox mcp --http`: sessions, handles, and who is let in.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::world::{DEADLINE, Listening, MODES, SKILLBOX, World, client, python};
use crate::lab::{all_processes, program, reap, run_to_end, start};
use crate::workspace::root;

#[test]
fn s24_over_http_clients_have_sessions_or_carry_a_handle() {
    let Some(python) = python() else { return };
    let world = World::new();
    let csv = world.path("host/sales.csv");
    fs::write(&csv, "date,revenue\n2024-01-01,10\n2024-02-01,20\n2024-03-01,15\n").unwrap();
    let server = Listening::start(&world);
    let told = world.talk(&python, &server.address, "report", "legacy", &[csv.to_str().unwrap()]);
    assert_eq!(told["named"][1], "odd");
    assert!(told["chart"].as_str().unwrap().starts_with("<svg"));
    for mode in MODES {
        let told = world.talk(&python, &server.address, "cancel", mode, &[]);
        assert_eq!(told["after"], "after\n");
    }
    let told = world.talk(&python, &server.address, "handle", "auto", &[]);
    assert_eq!((&told["later"], &told["read"]), (&json!("kept\n"), &json!("kept\n")));
    assert_eq!(told["stranger"], 1, "another session has another workspace");
    assert_eq!(told["refused"].as_array().unwrap().len(), 2, "{told}");
    server.stop(&world);
}

#[test]
fn s26_web_pages_and_other_names_of_this_machine_are_refused() {
    let world = World::new();
    let server = Listening::start(&world);
    assert!(server.ask("Host: PLACE").contains(" 200 "));
    assert!(server.ask("Host: PLACE\r\nOrigin: http://PLACE").contains(" 200 "));
    assert!(
        server
            .ask("Host: PLACE\r\nOrigin: http://evil.example")
            .contains(" 403 ")
    );
    assert!(server.ask("Host: evil.example").contains(" 403 "));
    server.stop(&world);

    let mut command = program(SKILLBOX);
    command
        .args(["mcp", "--http", "0.0.0.0:0", "--state-dir"])
        .arg(world.path("state"));
    let refused = run_to_end(&mut command, b"", DEADLINE);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && told.contains("can be reached from other machines"),
        "{told}"
    );
}

#[test]
fn s25_a_killed_client_leaves_no_process_and_no_workspace() {
    let Some(python) = python() else { return };
    let world = World::new();
    let server = Listening::start(&world);
    let mut clients = Vec::new();
    for mode in MODES {
        // A length that no other sleep has, to find the process by.
        let seconds = format!("600.{}{}", std::process::id(), clients.len());
        let mut command = client(&python);
        command
            .arg(root().join("tests/mcp/client.py"))
            .args(["forever", mode, &server.address, "$WORK_DIR/mark", &seconds])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut client = start(&mut command);
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), r#"{"running": true}"#, "{mode}");
        clients.push((client, seconds));
    }
    assert_eq!(fs::read_dir(world.path("state/sessions")).unwrap().count(), 2);
    for (client, seconds) in &mut clients {
        assert!(
            soon(|| is_running(seconds)),
            "the run goes on before the client is killed"
        );
        reap(client);
    }
    world.assert_clean();
    for (_, seconds) in &clients {
        assert!(!is_running(seconds), "sleep {seconds} is still there");
    }
    server.stop(&world);
}

fn soon(is_so: impl Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(5);
    while !is_so() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    is_so()
}

/// Whether a process sleeps for so long.
fn is_running(seconds: &str) -> bool {
    let wanted = format!("sleep\0{seconds}\0");
    all_processes().iter().any(|(pid, _, _)| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words == wanted.as_bytes()
    })
}
