//! Forwarding the audit log to real receivers: nothing is lost, and what waits is visible.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::{RandomNumbers, repetitions, seed, verified_records};
use crate::harness::{
    Answer, Collector, Fixture, HttpServer, Rsyslog, SyslogBehaviour, SyslogServer, need, sequence, wait_until,
};

fn run_once(fixture: &Fixture) {
    let answer = fixture.request(json!({"skill": "probe", "command": "true"})).run();
    assert_eq!(answer.code, Some(0), "{}", answer.describe());
}

fn forward(fixture: &Fixture, address: &str) -> Answer {
    let words = ["audit", "forward", "--json", "--audit-forward", address];
    fixture.command(&words).run()
}

fn status(fixture: &Fixture, address: &str) -> (Option<i32>, Value) {
    let words = ["audit", "status", "--json", "--audit-forward", address];
    let answer = fixture.command(&words).run();
    (answer.code, answer.json().clone())
}

/// The lines of the log.
fn log_lines(fixture: &Fixture) -> Vec<String> {
    let exported = fixture.command(&["audit", "export"]).run();
    let text = String::from_utf8(exported.process.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "where the peers are installed is a setting of the tests"
)]
fn rsyslog_gets_every_record_as_it_is_in_the_log() {
    let root = std::env::var_os("SKILLBOX_RSYSLOG");
    if !need(root.is_some(), "rsyslog, unpacked to SKILLBOX_RSYSLOG") {
        return;
    }
    let rsyslog = Rsyslog::start(Path::new(&root.unwrap()));
    let mut expected = Vec::new();
    for address in rsyslog.addresses() {
        let fixture = Fixture::new();
        run_once(&fixture);
        let refused = fixture.request(json!({"skill": "probe", "command": "true"}));
        let refused = refused.with_args(&["--trust", "approved"]).run();
        assert_eq!(refused.code, Some(125), "{}", refused.describe());
        let forwarded = forward(&fixture, &address);
        assert_eq!(forwarded.code, Some(0), "{}", forwarded.describe());
        assert_eq!(forwarded.json()["forwarded"], 3, "{address}");
        let heads = ["13.info|run-started", "13.info|run-ended", "13.warning|run-refused"];
        for (index, (head, line)) in heads.iter().zip(log_lines(&fixture)).enumerate() {
            let record: Value = serde_json::from_str(&line).unwrap();
            let host = record["device"]["hostname"].as_str().unwrap();
            let id = index + 1;
            expected.push((
                head.to_string(),
                format!("|{host}|skillbox|[meta sequenceId=\"{id}\"]|{line}"),
            ));
        }
        assert_eq!(forward(&fixture, &address).json()["forwarded"], 0, "nothing twice");
    }
    wait_until("rsyslog wrote all messages", || {
        rsyslog.received().len() >= expected.len()
    });
    let received = rsyslog.received();
    assert_eq!(received.len(), expected.len());
    for (line, (head, rest)) in received.iter().zip(&expected) {
        let head = head.trim_start_matches("13.");
        assert!(line.contains(head), "{line}");
        assert!(line.ends_with(rest.as_str()), "{line}\nexpected …{rest}");
    }
}

#[test]
fn records_wait_for_a_receiver_and_the_lag_is_visible() {
    let fixture = Fixture::new();
    run_once(&fixture);
    // The port is taken and refuses connections until the server starts.
    let reserved = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("syslog+tcp://{}", reserved.local_addr().unwrap());
    drop(reserved);
    let failed = forward(&fixture, &address);
    assert_eq!(failed.code, Some(1), "{}", failed.describe());
    let (code, shown) = status(&fixture, &address);
    assert_eq!((code, &shown["pending"]), (Some(1), &json!(2)), "{shown}");
    assert!(
        shown["problem"]["message"].as_str().unwrap().contains("refused"),
        "{shown}"
    );
    let doctor = fixture.command(&["doctor", "--json"]);
    let doctor = doctor.env("SKILLBOX_AUDIT_FORWARD", &address).run();
    assert_eq!(doctor.json()["audit_forward"]["pending"], 2, "{}", doctor.describe());
    run_once(&fixture);

    let server = SyslogServer::start();
    assert_eq!(forward(&fixture, &server.address()).json()["forwarded"], 4);
    assert_eq!(server.sequences(), [0, 1, 2, 3]);
    let (code, shown) = status(&fixture, &server.address());
    assert_eq!(
        (code, &shown["pending"], shown.get("problem")),
        (Some(0), &json!(0), None)
    );
    let without = fixture.command(&["audit", "status"]).run();
    assert_eq!(without.code, Some(1), "without a receiver: {}", without.describe());
}

#[test]
fn a_server_that_dies_in_the_middle_gets_its_records_again() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        run_once(&fixture);
    }
    let server = SyslogServer::start();
    for behaviour in [
        SyslogBehaviour::DiesAfter(0),
        SyslogBehaviour::DiesAfter(2_000),
        SyslogBehaviour::Hangs,
    ] {
        server.set_behaviour(behaviour);
        let failed = forward(&fixture, &server.address());
        assert_eq!(failed.code, Some(1), "{behaviour:?}: {}", failed.describe());
        assert_eq!(status(&fixture, &server.address()).1["pending"], 6, "{behaviour:?}");
    }
    server.set_behaviour(SyslogBehaviour::Reads);
    assert_eq!(forward(&fixture, &server.address()).json()["forwarded"], 6);
    assert_eq!(server.sequences(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_collector_confirms_with_its_status() {
    let fixture = Fixture::new();
    run_once(&fixture);
    let token = fixture.add_host_file("token", "secret-token\n");
    let collector = Collector::start(&["503 Service Unavailable", "204 No Content"]);
    let forward = || {
        let words = ["audit", "forward", "--json", "--audit-forward", &collector.address()];
        let token = token.display().to_string();
        fixture
            .command(&[&words[..], &["--audit-forward-token", &token]].concat())
            .run()
    };
    let failed = forward();
    assert_eq!(failed.code, Some(1), "{}", failed.describe());
    assert!(failed.mentions("503"), "{}", failed.describe());
    assert_eq!(forward().json()["forwarded"], 2);
    let requests = collector.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let head = request.head.to_ascii_lowercase();
        assert!(head.starts_with("post /audit http/1.1"), "{head}");
        assert!(head.contains("authorization: bearer secret-token\r\n"), "{head}");
        assert!(head.contains("content-type: application/x-ndjson\r\n"), "{head}");
        assert_eq!(request.body.lines().collect::<Vec<_>>(), log_lines(&fixture));
    }
}

#[test]
fn a_server_forwards_in_the_background_and_shows_the_lag() {
    let receiver = SyslogServer::start();
    receiver.set_behaviour(SyslogBehaviour::DiesAfter(0));
    let (mut server, _) = HttpServer::start(&["--audit-forward", &receiver.address()], &[]);
    let run = json!({"skill": "python-math", "command": "true"});
    let metric = |server: &HttpServer, line: &str| {
        let metrics = server.request_json("", "GET", "/metrics", None).text();
        metrics.lines().any(|found| found == line)
    };
    for _ in 0..5 {
        server
            .request_json("", "POST", "/v1/runs?wait=60", Some(&run))
            .expect_status(200);
    }
    assert!(receiver.messages().is_empty());
    wait_until("the metrics show the lag", || {
        metric(&server, "skillbox_audit_pending_records 10") && metric(&server, "skillbox_audit_forward_failing 1")
    });
    receiver.set_behaviour(SyslogBehaviour::Reads);
    wait_until("the receiver has all records", || receiver.messages().len() >= 10);
    wait_until("the metrics show no lag", || {
        metric(&server, "skillbox_audit_pending_records 0") && metric(&server, "skillbox_audit_forward_failing 0")
    });
    // The records of the last run are forwarded before the process ends.
    server
        .request_json("", "POST", "/v1/runs?wait=60", Some(&run))
        .expect_status(200);
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().success());
    assert_eq!(receiver.sequences(), (0..12).collect::<Vec<_>>());
}

#[test]
fn no_record_is_lost_when_servers_and_receivers_are_killed() {
    let fixture = Fixture::new();
    let receiver = SyslogServer::start();
    let trust_dir = fixture.path_str("state/trust");
    let mut numbers = RandomNumbers::new(seed());
    for _ in 0..repetitions("SKILLBOX_TRUST_FORWARD_KILLS", 4) {
        let flags = ["--trust-dir", &trust_dir, "--audit-forward", &receiver.address()];
        let (mut server, _) = HttpServer::start(&flags, &[]);
        let run = json!({"skill": "python-math", "command": "true"});
        for _ in 0..3 {
            if numbers.below(2) == 0 {
                receiver.set_behaviour(SyslogBehaviour::DiesAfter(numbers.below(5_000)));
            } else {
                receiver.set_behaviour(SyslogBehaviour::Reads);
            }
            server
                .request_json("", "POST", "/v1/runs?wait=60", Some(&run))
                .expect_status(200);
        }
        // The time is part of the test: the server may be killed at any point of a delivery.
        std::thread::sleep(std::time::Duration::from_micros(numbers.below(1_500_000) as u64));
        server.signal(Signal::KILL);
        assert!(!server.wait_for_exit().success());
    }
    receiver.set_behaviour(SyslogBehaviour::Reads);
    let last = forward(&fixture, &receiver.address());
    assert_eq!(last.code, Some(0), "{}", last.describe());
    let records = verified_records(&fixture);
    let received: BTreeSet<u64> = receiver.sequences().into_iter().collect();
    assert_eq!(
        received,
        (0..records.len() as u64).collect(),
        "each record at least once"
    );
    // In the order of the log: a record arrives for the first time only after all before it.
    let mut next = 0;
    for found in receiver.messages().iter().map(|message| sequence(message)) {
        assert!(found <= next, "{found} arrived before {next}");
        next = next.max(found + 1);
    }
}

#[test]
fn a_lost_part_of_the_log_is_reported_to_the_receiver() {
    let fixture = Fixture::new();
    let receiver = SyslogServer::start();
    run_once(&fixture);
    assert_eq!(forward(&fixture, &receiver.address()).json()["forwarded"], 2);
    // Somebody moves the log away and starts a new one.
    for name in ["audit/head", "audit/log-00000000.jsonl", "audit.chain"] {
        fs::remove_file(fixture.path("state/trust").join(name)).unwrap();
    }
    run_once(&fixture);
    assert_eq!(forward(&fixture, &receiver.address()).json()["forwarded"], 2);
    let messages = receiver.messages();
    assert!(
        messages[2].contains(" records-missing - {") && messages[2].contains("the log was replaced"),
        "{}",
        messages[2]
    );
    assert_eq!(messages.len(), 5);
}
