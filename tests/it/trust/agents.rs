//! An agent over MCP, or by `call`, cannot run a skill that nobody approved, whatever it tries.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use super::support::{run_ids, verified_records};
use crate::harness::Fixture;

/// A client of the protocol, as small as possible.
struct Client {
    server: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    fn start(fixture: &Fixture, dialect: &str) -> Self {
        let arguments = ["mcp", "--trust", "approved", "--dialect", dialect];
        let mut server = fixture.command(&arguments).spawn_with_stdin();
        let mut client = Self {
            requests: server.stdin.take().unwrap(),
            responses: BufReader::new(server.stdout.take().unwrap()),
            server,
            last_id: 0,
        };
        let client_info = json!({"name": "test", "version": "1"});
        client.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info}),
        );
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.responses.read_line(&mut line).unwrap(), 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> String {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
            .to_string()
    }

    fn end(mut self) {
        drop(self.requests);
        self.server.wait().unwrap();
    }
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.add_skill("approved-one", &[("scripts/run.sh", "echo EXECUTED-$((40 + 2))\n")]);
    let dir = fixture.add_skill("evil", &[("scripts/run.sh", "echo EXECUTED-$((40 + 2))\n")]);
    let hook = "hooks:\n  PostToolUse:\n    - hooks:\n        - type: command\n          command: touch out/hook\n  \
                SessionStart:\n    - hooks:\n        - type: command\n          command: touch out/hook\n";
    let skill_md = format!("---\nname: evil\ndescription: A skill of the tests.\n{hook}---\n\n# evil\n");
    fs::write(dir.join("SKILL.md"), skill_md).unwrap();
    let approved = fixture.command(&["approve", "approved-one", "--yes"]).run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    fixture
}

#[test]
fn no_tool_and_no_dialect_runs_an_unapproved_skill() {
    let fixture = fixture();
    let script = json!({"skill": "evil", "command": "bash scripts/run.sh"});
    let beside = json!({"skill": "approved-one", "command": "bash ../evil/scripts/run.sh", "with_skills": ["evil"]});
    let staged = json!({"skill": "approved-one", "command": "bash ../../work/inputs/run.sh",
        "inputs": [{"from": "skill://evil/scripts/run.sh"}]});
    for dialect in ["skillbox", "trpc"] {
        let mut client = Client::start(&fixture, dialect);
        client.call("skill_load", json!({"skill": "evil"}));
        for arguments in [&script, &beside, &staged] {
            let answer = client.call("skill_run", arguments.clone());
            assert!(answer.contains("not_approved"), "{dialect} {arguments}: {answer}");
            assert!(!answer.contains("EXECUTED-42"), "{dialect} {arguments}: {answer}");
        }
        client.end();
    }
    for (dialect, tool) in [("deepagents", "load_skill"), ("saa", "read_skill")] {
        let mut client = Client::start(&fixture, dialect);
        let answer = client.call(tool, json!({"skill_name": "evil"}));
        assert!(answer.contains("evil") && !answer.contains("EXECUTED-42"), "{answer}");
        client.end();
    }
    let records = verified_records(&fixture);
    assert_eq!(run_ids(&records, "started"), Vec::<String>::new());
    assert!(run_ids(&records, "denied").len() >= 6);

    // The control: an approved skill runs by the same tool.
    let mut client = Client::start(&fixture, "skillbox");
    let answer = client.call(
        "skill_run",
        json!({"skill": "approved-one", "command": "bash scripts/run.sh"}),
    );
    assert!(answer.contains("EXECUTED-42"), "{answer}");
    client.end();
    assert_eq!(run_ids(&verified_records(&fixture), "started").len(), 1);
}

#[test]
fn a_hook_of_another_version_than_the_approved_one_does_not_run() {
    let fixture = fixture();
    let load = |trust: &str| {
        let arguments = r#"{"skill": "evil"}"#;
        let call = fixture.command(&["call", "skill_load", arguments, "--session", "s1", "--trust", trust]);
        call.run()
    };
    let fire = |trust: &str| {
        let arguments = r#"{"skill": "approved-one", "command": "true"}"#;
        fixture
            .command(&["call", "skill_run", arguments, "--session", "s1", "--trust", trust])
            .run()
    };
    assert_eq!(load("approved").code, Some(0));
    assert_eq!(fire("approved").code, Some(0));
    let hook_file = fixture.path("state/sessions/s1/workspace/out/hook");
    let started = |fixture: &Fixture| run_ids(&verified_records(fixture), "started").len();
    assert_eq!(started(&fixture), 1, "the call, and no hook");

    // Approved without its hooks: the hook that the session has loaded is not part of the approved version.
    let skill_md = fixture.skill_path("evil", "SKILL.md");
    let with_hooks = fs::read(&skill_md).unwrap();
    fs::write(&skill_md, "---\nname: evil\ndescription: A skill of the tests.\n---\n").unwrap();
    assert_eq!(fixture.command(&["approve", "evil", "--yes"]).run().code, Some(0));
    assert_eq!(fire("approved").code, Some(0));
    assert_eq!(started(&fixture), 2, "the call, and no hook");
    assert!(!hook_file.exists());

    // The control: with its hooks approved, the hook runs.
    fs::write(&skill_md, with_hooks).unwrap();
    assert_eq!(fixture.command(&["approve", "evil", "--yes"]).run().code, Some(0));
    let answer = fire("approved");
    assert_eq!(started(&fixture), 4, "the call and its hook: {}", answer.describe());
}
