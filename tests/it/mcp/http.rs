//! `skillbox mcp --http`: sessions, handles, and who is let in.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use serde_json::json;

use super::world::{DEADLINE, Listening, MODES, SKILLBOX, World, client, python};
use crate::lab::{all_processes, program, reap, run_to_end, start};
use crate::workspace::root;

#[test]
fn s27_over_http_clients_have_sessions_or_carry_a_handle() {
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
fn s29_web_pages_and_other_names_of_this_machine_are_refused() {
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
fn s28_a_killed_client_leaves_no_process_and_no_workspace() {
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

#[test]
fn who_says_nothing_keeps_nobody_waiting() {
    let world = World::new();
    let server = Listening::start(&world);
    let mut slow = TcpStream::connect(server.place()).unwrap();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
    let begin = Instant::now();
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let many = 10_000.min(open_files / 2);
    let mut idle = Vec::new();
    for number in 0..many {
        idle.push(TcpStream::connect(server.place()).unwrap());
        // The kernel keeps few waiting: more would have to knock again a second later.
        if number % 64 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let asked = Instant::now();
    assert!(server.ask("Host: PLACE").contains(" 200 "));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());

    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // Nothing, or a word of farewell.
    let _farewell = slow.read(&mut [0; 100]).unwrap();
    assert!(begin.elapsed() > Duration::from_secs(10), "{:?}", begin.elapsed());
    drop(idle);
    server.stop(&world);
}

#[test]
fn what_is_too_large_or_no_message_is_refused() {
    let world = World::new();
    let server = Listening::start(&world);
    for (body, status) in [
        (vec![b'x'; 13 << 20], " 413 "),
        (b"{".to_vec(), " 415 "),
        (vec![b'['; 100_000], " 415 "),
        (br#"{"jsonrpc": "2.0", "id": {}, "method": 7}"#.to_vec(), " 415 "),
    ] {
        let told = server.ask_with("Host: PLACE", &body);
        assert!(told.contains(status), "{told}");
    }
    assert!(server.ask("Host: PLACE").contains(" 200 "), "and it goes on");
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
