//! `skillbox mcp --http`: sessions, handles, and refused connections.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use serde_json::json;

use super::fixture::{MODES, McpFixture, McpHttpServer, SCENARIO_DEADLINE, SKILLBOX, client, python};
use crate::harness::{
    all_processes, assert_within, kill_and_reap, program, run_to_completion, spawn_tracked, wait_until,
};
use crate::workspace::root;

#[test]
fn s27_http_clients_have_a_session_or_carry_a_handle() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    let csv = fixture.path("host/sales.csv");
    fs::write(&csv, "date,revenue\n2024-01-01,10\n2024-02-01,20\n2024-03-01,15\n").unwrap();
    let server = McpHttpServer::start(&fixture);
    let result = fixture.run_scenario_over_http(&python, &server.address, "report", "legacy", &[csv.to_str().unwrap()]);
    assert_eq!(result["named"][1], "odd");
    assert!(result["chart"].as_str().unwrap().starts_with("<svg"));
    for mode in MODES {
        let result = fixture.run_scenario_over_http(&python, &server.address, "cancel", mode, &[]);
        assert_eq!(result["after"], "after\n");
    }
    let result = fixture.run_scenario_over_http(&python, &server.address, "handle", "auto", &[]);
    assert_eq!(
        (&result["later"], &result["read"]),
        (&json!("kept\n"), &json!("kept\n"))
    );
    assert_eq!(result["other_session"], 1, "another session has another workspace");
    assert_eq!(result["refused"].as_array().unwrap().len(), 2, "{result}");
    server.stop(&fixture);
}

#[test]
fn s27_a_session_is_named_by_address_header_or_argument() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    let server = McpHttpServer::start(&fixture);
    let run = |name: &str, mode: &str, word: &str| {
        let address = format!("{}/s/{name}", server.address);
        fixture.run_scenario_over_http(&python, &address, "named", mode, &[word])
    };
    let (ours, other) = ("our-session-7f2c1d9e8b3a4f60", "their-session-03b1c9a7e5d24f68");
    // Each call is a client of its own.
    for (mode, word, words) in [
        ("legacy", "one", "one\n"),
        ("auto", "two", "one\ntwo\n"),
        ("legacy", "three", "one\ntwo\nthree\n"),
    ] {
        let result = run(ours, mode, word);
        assert_eq!(
            (&result["words"], &result["read"]),
            (&json!(words), &json!(words)),
            "{mode}"
        );
        assert_eq!(
            result["link"], "workspace://out/words",
            "the address leads to the session"
        );
    }
    assert_eq!(
        run(other, "auto", "apart")["words"],
        "apart\n",
        "another name, another session"
    );

    let result = fixture.run_scenario_over_http(&python, &server.address, "argument", "auto", &[]);
    for key in ["later", "read", "by_input"] {
        assert_eq!(result[key], "kept\n", "{key}: {result}");
    }
    assert_eq!(
        (&result["in_text"], &result["declared"]),
        (&json!(true), &json!(true)),
        "{result}"
    );
    assert!(
        result["refused"].as_str().unwrap().contains("must not be guessed"),
        "{result}"
    );

    assert!(
        server
            .status_line("Host: ADDRESS\r\nSkillbox-Session: demo")
            .contains(" 400 ")
    );
    let header = format!("Host: ADDRESS\r\nSkillbox-Session: {ours}");
    assert!(server.status_line(&header).contains(" 200 "), "a long name is accepted");
    server.stop(&fixture);
}

#[test]
fn s29_foreign_origins_and_host_names_are_refused() {
    let fixture = McpFixture::new();
    let server = McpHttpServer::start(&fixture);
    assert!(server.status_line("Host: ADDRESS").contains(" 200 "));
    assert!(
        server
            .status_line("Host: ADDRESS\r\nOrigin: http://ADDRESS")
            .contains(" 200 ")
    );
    assert!(
        server
            .status_line("Host: ADDRESS\r\nOrigin: http://evil.example")
            .contains(" 403 ")
    );
    assert!(server.status_line("Host: evil.example").contains(" 403 "));
    server.stop(&fixture);

    let mut command = program(SKILLBOX);
    command
        .args(["mcp", "--http", "0.0.0.0:0", "--state-dir"])
        .arg(fixture.path("state"));
    let refused = run_to_completion(&mut command, b"", SCENARIO_DEADLINE);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && stderr.contains("is reachable from other machines"),
        "{stderr}"
    );
}

#[test]
fn s28_a_killed_client_leaves_no_process_and_no_workspace() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    let server = McpHttpServer::start(&fixture);
    let mut clients = Vec::new();
    for mode in MODES {
        // No other process sleeps for this time, so that it identifies the process.
        let seconds = format!("600.{}{}", std::process::id(), clients.len());
        let mut command = client(&python);
        command
            .arg(root().join("tests/mcp/client.py"))
            .args(["forever", mode, &server.address, "$WORK_DIR/mark", &seconds])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut client = spawn_tracked(&mut command);
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), r#"{"running": true}"#, "{mode}");
        clients.push((client, seconds));
    }
    assert_eq!(fs::read_dir(fixture.path("state/sessions")).unwrap().count(), 2);
    for (client, seconds) in &mut clients {
        wait_until("the run is running before the client is killed", || {
            is_sleeping(seconds)
        });
        kill_and_reap(client);
    }
    fixture.assert_clean();
    for (_, seconds) in &clients {
        assert!(!is_sleeping(seconds), "sleep {seconds} is still running");
    }
    server.stop(&fixture);
}

#[test]
fn idle_connections_do_not_delay_others_and_time_out() {
    let fixture = McpFixture::new();
    let server = McpHttpServer::start(&fixture);
    let begin = Instant::now();
    let mut slow = TcpStream::connect(server.host_and_port()).unwrap();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = 10_000.min(open_files / 2);
    let mut idle = Vec::new();
    for number in 0..count {
        idle.push(TcpStream::connect(server.host_and_port()).unwrap());
        // The backlog of the listener is short; a connection that does not fit is retried a second later.
        if number % 64 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let asked = Instant::now();
    assert!(server.status_line("Host: ADDRESS").contains(" 200 "));
    assert_within(
        asked.elapsed(),
        Duration::from_secs(5),
        "a request beside idle connections",
    );

    slow.set_read_timeout(Some(SCENARIO_DEADLINE)).unwrap();
    // The end of the connection, or a last response.
    let _response = slow.read(&mut [0; 100]).unwrap();
    assert!(begin.elapsed() > Duration::from_secs(10), "{:?}", begin.elapsed());
    drop(idle);
    server.stop(&fixture);
}

#[test]
fn oversized_and_malformed_messages_are_refused() {
    let fixture = McpFixture::new();
    let server = McpHttpServer::start(&fixture);
    for (body, status) in [
        (vec![b'x'; 13 << 20], " 413 "),
        (b"{".to_vec(), " 415 "),
        (vec![b'['; 100_000], " 415 "),
        (br#"{"jsonrpc": "2.0", "id": {}, "method": 7}"#.to_vec(), " 415 "),
    ] {
        let status_line = server.status_line_for("Host: ADDRESS", &body);
        assert!(status_line.contains(status), "{status_line}");
    }
    assert!(
        server.status_line("Host: ADDRESS").contains(" 200 "),
        "the server still serves"
    );
    server.stop(&fixture);
}

/// Whether a process runs `sleep` for this time.
fn is_sleeping(seconds: &str) -> bool {
    let expected = format!("sleep\0{seconds}\0");
    all_processes().iter().any(|(pid, _, _)| {
        let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        cmdline == expected.as_bytes()
    })
}
