//! With `trust = "approved"`, every way in refuses a skill that nobody approved, and runs it once it is approved.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::support::{run_ids, verified_records};
use crate::harness::{Answer, Fixture, HttpServer};
use crate::seeds::mcp_text_client::McpTextClient;

/// What the script of the skill prints. No command line contains it.
const MARKER: &str = "EXECUTED-42";
const SCRIPT: &str = "echo EXECUTED-$((40 + 2))\n";
const RUN_SCRIPT: &str = "bash scripts/run.sh";
const RUN_BESIDE: &str = "bash ../evil/scripts/run.sh";
const RUN_INPUT: &str = "bash ../../work/inputs/run.sh";

/// One attempt to run the skill `evil`.
struct Way<'a> {
    name: String,
    /// Makes the attempt, and returns everything that the caller can see of its outcome.
    attempt: Box<dyn Fn() -> String + 'a>,
    /// Whether the caller learns that the skill is not approved. Hooks are not calls: theirs is a note in the outcome.
    names_refusal: bool,
}

/// The host under attack: a fixture whose skills all ways share, and a server on it.
struct Host {
    fixture: Fixture,
    server: HttpServer,
    counter: AtomicUsize,
}

fn direct() -> Value {
    json!({"skill": "evil", "command": RUN_SCRIPT})
}

fn beside() -> Value {
    json!({"skill": "approved-one", "command": RUN_BESIDE, "with_skills": ["evil"]})
}

fn staged() -> Value {
    json!({"skill": "approved-one", "command": RUN_INPUT, "inputs": [{"from": "skill://evil/scripts/run.sh"}]})
}

fn shown(answer: &Answer) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&answer.process.stdout) + &text(&answer.process.stderr);
    // Messages are wrapped to the width of the terminal.
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Host {
    fn start() -> Self {
        let fixture = Fixture::new();
        fixture.add_skill("approved-one", &[("scripts/run.sh", "true\n")]);
        let dir = fixture.add_skill("evil", &[("scripts/run.sh", SCRIPT)]);
        let hook = "hooks:\n  PostToolUse:\n    - hooks:\n        - type: command\n          \
                    command: bash scripts/run.sh >> $OUTPUT_DIR/hook\n";
        let skill_md = format!("---\nname: evil\ndescription: A skill of the tests.\n{hook}---\n\n# evil\n");
        fs::write(dir.join("SKILL.md"), skill_md).unwrap();
        let host = Self {
            server: Self::serve(&fixture),
            fixture,
            counter: AtomicUsize::new(0),
        };
        host.approve("approved-one");
        host
    }

    fn serve(fixture: &Fixture) -> HttpServer {
        let (skills, trust_dir) = (fixture.path_str("skills"), fixture.path_str("state/trust"));
        let flags = ["--skills", &skills, "--trust", "approved", "--trust-dir", &trust_dir];
        HttpServer::start(&flags, &[]).0
    }

    fn approve(&self, name: &str) {
        let approved = self.fixture.command(&["approve", name, "--yes"]).run();
        assert_eq!(approved.code, Some(0), "{}", approved.describe());
    }

    /// A number that no attempt had before.
    fn next(&self) -> usize {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    fn command(&self, words: &[&str]) -> String {
        shown(&self.fixture.command(words).env("SKILLBOX_TRUST", "approved").run())
    }

    fn call(&self, arguments: &Value, flags: &[&str]) -> String {
        let arguments = arguments.to_string();
        self.command(&[&["call", "skill_run", arguments.as_str()], flags].concat())
    }

    fn request_file(&self, request: &Value) -> String {
        let name = format!("request-{}.json", self.next());
        self.fixture
            .add_host_file(&name, request.to_string())
            .display()
            .to_string()
    }

    /// Runs a batch; returns what it printed and its results.
    fn batch(&self, words: &[&str]) -> String {
        let out = self.fixture.path_str(&format!("scratch/out-{}", self.next()));
        let printed = self.command(&[&["batch", "run", "--out", &out], words].concat());
        let results = fs::read_to_string(format!("{out}/results.jsonl")).unwrap_or_default();
        printed + &results
    }

    fn post(&self, path: &str, body: &Value) -> String {
        self.server.request_json("", "POST", path, Some(body)).text()
    }

    fn http_tool(&self, body: &Value, query: &str) -> String {
        let session = format!("s{}", self.next());
        self.post("/v1/sessions", &json!({"id": session}));
        self.post(&format!("/v1/sessions/{session}/tools/skill_run{query}"), body)
    }

    fn mcp(&self, dialect: &str, calls: &[(&str, Value)]) -> String {
        let (skills, state) = (self.fixture.path("skills"), self.fixture.path("state"));
        let mut client = McpTextClient::connect(&skills, &state, &["--trust", "approved", "--dialect", dialect]);
        let mut all = String::new();
        for (tool, arguments) in calls {
            let call = json!({"name": tool, "arguments": arguments});
            all.push_str(&client.request("tools/call", call).to_string());
        }
        all
    }

    /// Loads the skill, whose hook then runs after tool calls, and shows what its hook wrote.
    fn hook_by_call(&self) -> String {
        let session = format!("h{}", self.next());
        let session = ["--session", session.as_str()];
        let load = json!({"skill": "evil"}).to_string();
        let loaded = self.command(&[&["call", "skill_load", load.as_str()][..], &session].concat());
        let look = json!({"skill": "approved-one", "command": "cat $OUTPUT_DIR/hook"});
        self.call(&look, &session);
        loaded + &self.call(&look, &session)
    }

    fn hook_by_mcp(&self) -> String {
        let look = json!({"skill": "approved-one", "command": "cat $OUTPUT_DIR/hook"});
        let load = ("skill_load", json!({"skill": "evil"}));
        self.mcp("skillbox", &[load, ("skill_run", look.clone()), ("skill_run", look)])
    }

    fn ways<'a>(&'a self) -> Vec<Way<'a>> {
        let mut ways = Vec::new();
        let mut add = |name: &str, attempt: Box<dyn Fn() -> String + 'a>| {
            ways.push(Way {
                names_refusal: !name.starts_with("hook"),
                name: name.to_owned(),
                attempt,
            });
        };
        add(
            "run",
            Box::new(move || self.command(&["run", "evil", "--", RUN_SCRIPT])),
        );
        add(
            "run --script",
            Box::new(move || self.command(&["run", "evil", "--script", "scripts/run.sh"])),
        );
        add(
            "run --with-skill",
            Box::new(move || self.command(&["run", "approved-one", "--with-skill", "evil", "--", RUN_BESIDE])),
        );
        add(
            "run --input skill://",
            Box::new(move || {
                let input = "skill://evil/scripts/run.sh";
                self.command(&["run", "approved-one", "--input", input, "--", RUN_INPUT])
            }),
        );
        add(
            "run PATH",
            Box::new(move || {
                let path = self.fixture.path_str("skills/evil");
                self.command(&["run", &path, "--", RUN_SCRIPT])
            }),
        );
        add(
            "call in trpc",
            Box::new(move || self.call(&direct(), &["--dialect", "trpc"])),
        );
        add(
            "batch --each",
            Box::new(move || {
                let pattern = self.fixture.path_str("host/canary.txt");
                self.batch(&["--skill", "evil", "--each", &pattern, "--", RUN_SCRIPT])
            }),
        );
        let requests = [
            ("direct", direct as fn() -> Value),
            ("with_skills", beside),
            ("skill:// input", staged),
        ];
        for (name, request) in requests {
            let of = |way: &str| format!("{way}, {name}");
            add(
                &of("run --request"),
                Box::new(move || self.command(&["run", "--request", &self.request_file(&request())])),
            );
            add(&of("call"), Box::new(move || self.call(&request(), &[])));
            add(
                &of("call in a session"),
                Box::new(move || self.call(&request(), &["--session", &format!("c{}", self.next())])),
            );
            add(
                &of("batch"),
                Box::new(move || self.batch(&[&self.request_file(&request())])),
            );
            add(
                &of("HTTP run"),
                Box::new(move || self.post("/v1/runs?wait=60", &request())),
            );
            add(&of("HTTP tool"), Box::new(move || self.http_tool(&request(), "")));
            add(
                &of("MCP"),
                Box::new(move || self.mcp("skillbox", &[("skill_run", request())])),
            );
            add(
                &of("MCP in trpc"),
                Box::new(move || self.mcp("trpc", &[("skill_run", request())])),
            );
        }
        add(
            "HTTP tool in trpc",
            Box::new(move || self.http_tool(&direct(), "?dialect=trpc")),
        );
        add("hook, call", Box::new(move || self.hook_by_call()));
        add("hook, MCP", Box::new(move || self.hook_by_mcp()));
        ways
    }
}

#[test]
fn every_way_in_refuses_what_nobody_approved_and_runs_what_somebody_did() {
    let host = Host::start();
    let ways = host.ways();
    assert!(ways.len() >= 30, "{}", ways.len());
    for way in &ways {
        let text = (way.attempt)();
        assert!(!text.contains(MARKER), "{}: {text}", way.name);
        assert!(
            !way.names_refusal || text.contains("not_approved") || text.contains("is not approved"),
            "{}: {text}",
            way.name
        );
    }
    let started = run_ids(&verified_records(&host.fixture), "started").len();
    let denied = run_ids(&verified_records(&host.fixture), "denied").len();
    assert_eq!(
        started, 4,
        "only the runs of approved-one that look for the file of the hook"
    );
    assert!(denied >= ways.len() - 2, "{denied} refusals are recorded");

    host.approve("evil");
    for way in &ways {
        let text = (way.attempt)();
        assert!(text.contains(MARKER), "the control of {}: {text}", way.name);
    }
}
