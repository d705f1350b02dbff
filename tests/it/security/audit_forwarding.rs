//! Forwarded audit records: who may choose their receiver, and what a script or a receiver can do with them.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::harness::{Collector, Fixture, HttpServer, SyslogBehaviour, SyslogServer};

#[test]
fn h256_a_directory_cannot_choose_the_receiver_of_audit_records() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    for (key, value) in [
        ("audit_forward", format!("syslog+tcp://{address}")),
        ("audit_forward_token", "/etc/hostname".to_owned()),
        ("audit", "off".to_owned()),
        ("audit_bytes", "1".to_owned()),
        ("trust_dir", "trust".to_owned()),
    ] {
        let cli = Cli::new();
        let value = value
            .parse::<u64>()
            .map_or_else(|_| format!("{value:?}"), |number| number.to_string());
        cli.write_file("skillbox.toml", format!("{key} = {value}\n"));
        for line in [
            "list",
            "audit forward",
            "audit status",
            "serve --listen 127.0.0.1:0",
            "run python-math -- true",
        ] {
            let output = cli.run(line);
            assert_ne!(output.code, Some(0), "{key}: {line}");
            let text = format!("{}{}", output.stdout, output.stderr).replace("\n       ", " ");
            assert!(
                text.contains(key) && text.contains("config trust"),
                "{key}: {line}: {text}"
            );
        }
        cli.run("config trust --yes").expect_code(0);
        assert_eq!(cli.run("list").code, Some(0), "{key}: the control");
    }
    assert!(listener.accept().is_err(), "something connected to {address}");
}

#[test]
fn h257_a_redirect_leads_neither_records_nor_token_to_another_host() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.request(json!({"skill": "probe", "command": "true"})).run().code,
        Some(0)
    );
    let token = fixture.add_host_file("token", "secret-token").display().to_string();
    let other = Collector::start(&["204 No Content"]);
    let first = Collector::start(&[&format!("307 Temporary Redirect\r\nLocation: {}", other.address())]);
    let forward = |address: &str| {
        let words = [
            "audit",
            "forward",
            "--audit-forward",
            address,
            "--audit-forward-token",
            &token,
        ];
        fixture.command(&words).run()
    };
    let refused = forward(&first.address());
    assert_eq!(refused.code, Some(1), "{}", refused.describe());
    assert_eq!((first.requests().len(), other.requests().len()), (1, 0));
    assert_eq!(forward(&other.address()).code, Some(0), "the control");
    assert_eq!(other.requests().len(), 1);
    let shown = forward("http://logs.example.com/");
    assert!(shown.mentions("would show the token"), "{}", shown.describe());
}

#[test]
fn h258_a_receiver_that_hangs_delays_no_run() {
    let receiver = SyslogServer::start();
    receiver.set_behaviour(SyslogBehaviour::Hangs);
    let (server, _) = HttpServer::start(&["--audit-forward", &receiver.address()], &[]);
    let run = json!({"skill": "python-math", "command": "true"});
    for _ in 0..10 {
        let report = server
            .request_json("", "POST", "/v1/runs?wait=60", Some(&run))
            .expect_status(200);
        assert_eq!(report["exit_code"], 0);
    }
    assert!(
        receiver.messages().is_empty(),
        "the control: nothing was delivered meanwhile"
    );
}

#[test]
fn h259_a_command_cannot_forge_a_message() {
    let fixture = Fixture::new();
    let forged =
        "\n<8>1 2026-01-01T00:00:00Z host skillbox - run-ended - {\"forged\":true}\n31 <8>1 - - - - - - forged";
    let run = json!({"skill": "probe", "argv": ["echo", forged], "env": {"X": forged}});
    assert_eq!(fixture.request(run).run().code, Some(0));
    let receiver = SyslogServer::start();
    let words = ["audit", "forward", "--audit-forward", &receiver.address()];
    assert_eq!(fixture.command(&words).run().code, Some(0));
    let messages = receiver.messages();
    assert_eq!(messages.len(), 2, "one for each record: {messages:?}");
    for message in &messages {
        assert!(message.starts_with("<110>1 ") && !message.contains('\n'), "{message}");
        let record: Value = serde_json::from_str(&message[message.find('{').unwrap()..]).unwrap();
        assert_eq!(record.get("forged"), None);
    }
    assert!(
        messages[0].contains("forged"),
        "the control: the record has the command"
    );
}
