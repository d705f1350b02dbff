//! `skillbox mcp` and the real client of the protocol's Python SDK, in both revisions that clients speak.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::{finish, orphans, program, reap, run_to_end, start};
use crate::workspace::root;

/// Names a Python that has the package `mcp`; `tests/run` makes one and sets this.
const PYTHON_VARIABLE: &str = "SKILLBOX_MCP_PYTHON";
const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");
const DEADLINE: Duration = Duration::from_secs(60);
/// With a session, and without.
const MODES: [&str; 2] = ["legacy", "auto"];

#[expect(
    clippy::disallowed_methods,
    reason = "a test learns from tests/run what peers there are"
)]
#[expect(clippy::print_stderr, reason = "a skipped test says so, and why")]
fn python() -> Option<OsString> {
    let python = env::var_os(PYTHON_VARIABLE);
    if python.is_none() {
        let reason = format!("{PYTHON_VARIABLE} does not name a Python with the package mcp");
        let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "not skipped in CI: {reason}");
        eprintln!("skipped: {reason}");
    }
    python
}

struct World {
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("skillbox-mcp-").tempdir().unwrap();
        fs::create_dir(dir.path().join("host")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn words(&self, scenario: &str, mode: &str, own: &[&str], skills: &Path) -> Vec<OsString> {
        let script = root().join("tests/mcp/client.py");
        let mut words: Vec<OsString> = vec![script.into(), scenario.into(), mode.into(), SKILLBOX.into()];
        words.extend(own.iter().map(OsString::from));
        words.extend(["--", "--skills"].map(OsString::from));
        words.push(skills.into());
        words.push("--state-dir".into());
        words.push(self.path("state").into());
        words.push("--allow-host".into());
        words.push(self.path("host").into());
        words
    }

    /// What a scenario tells; afterwards nothing of the client's session is left.
    #[track_caller]
    fn play(&self, python: &OsString, scenario: &str, mode: &str, own: &[&str], skills: &Path) -> Value {
        let mut command = program(python);
        command.args(self.words(scenario, mode, own, skills));
        let ended = run_to_end(&mut command, b"", DEADLINE);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{scenario} {mode}: {told}");
        self.assert_clean();
        let line = String::from_utf8(ended.stdout).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = orphans().iter().map(|pid| format!("process {pid}")).collect();
        for place in ["state/sessions", "state/artifacts/artifacts", "state/scratch"] {
            let entries = fs::read_dir(self.path(place)).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path().display().to_string()));
        }
        left
    }

    #[track_caller]
    fn assert_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.left().is_empty() {
            assert!(Instant::now() < deadline, "left behind: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn shipped() -> PathBuf {
    root().join("skills")
}

#[test]
fn skills_are_described_loaded_and_read() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let told = World::new().play(&python, "tour", mode, &[], &shipped());
        let version = if mode == "legacy" { "2025-11-25" } else { "2026-07-28" };
        assert_eq!(told["version"], version);
        assert!(
            told["instructions"].as_str().unwrap().contains("- csv-report: "),
            "{mode}"
        );
        assert_eq!(told["tools"][0], "skill_list");
        assert_eq!(
            (&told["stable"], &told["without_output_schema"]),
            (&json!(true), &json!([]))
        );
        assert!(told["loaded_text"].as_str().unwrap().contains("# CSV report"));
        assert_eq!(told["loaded"]["skill"], "csv-report");
        assert_eq!(told["docs"]["result"][0], "references/report.md");
        assert_eq!(told["refused"]["is_error"], true);
        assert_eq!(told["refused"]["structured"]["error"]["code"], "unknown_skill");
        assert!(told["prompts"].as_array().unwrap().contains(&json!("csv-report")));
        assert!(told["prompt"].as_str().unwrap().contains("# CSV report"));
        check_extension(&told, mode);
    }
}

/// Every file once, with the size and digest that it has on disk.
fn check_extension(told: &Value, mode: &str) {
    let listed = told["skills"]["skills"].as_array().unwrap();
    assert_eq!(listed.len(), 7);
    let ours = listed
        .iter()
        .find(|skill| skill["frontmatter"]["name"] == "csv-report")
        .unwrap();
    assert_eq!(ours, &told["one"]["skill"], "one answer by list and by name");
    assert_eq!(
        ours["frontmatter"]["metadata"],
        json!({"version": "1.0.0", "category": "data"})
    );
    let on_disk = fs::read(shipped().join("csv-report/SKILL.md")).unwrap();
    assert_eq!(told["skill_md"].as_str().unwrap().as_bytes(), on_disk);
    let resources = ours["resources"].as_array().unwrap();
    let size_of = |file: &str| {
        let uri = format!("skill://csv-report/{file}");
        let found: Vec<_> = resources
            .iter()
            .filter(|resource| resource["uri"] == uri.as_str())
            .collect();
        assert_eq!(found.len(), 1, "{file}");
        assert!(found[0]["digest"].as_str().unwrap().starts_with("sha256:"));
        found[0]["size"].as_u64().unwrap()
    };
    assert_eq!(size_of("SKILL.md"), on_disk.len() as u64);
    let script = fs::metadata(shipped().join("csv-report/scripts/report.py")).unwrap();
    assert_eq!(size_of("scripts/report.py"), script.len());
    assert_eq!(told["skills"]["resultType"].is_string(), mode != "legacy");
    let children = told["children"]["resources"].as_array().unwrap();
    let scripts = children.iter().find(|child| child["name"] == "scripts").unwrap();
    assert_eq!(scripts["mimeType"], "inode/directory");
    let uris: Vec<&str> = told["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    assert!(
        uris.contains(&"skill://csv-report/SKILL.md") && uris.contains(&"skill://index.json"),
        "{uris:?}"
    );
    assert_eq!(told["index"]["skills"].as_array().unwrap().len(), 7);
}

#[test]
fn a_report_on_a_file_comes_back_with_its_chart() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let world = World::new();
        let csv = world.path("host/sales.csv");
        fs::write(
            &csv,
            "date,region,revenue\n2024-01-01,north,10\n2024-02-01,south,20\n2024-03-01,north,15\n",
        )
        .unwrap();
        let told = world.play(&python, "report", mode, &[csv.to_str().unwrap()], &shipped());
        let result = &told["result"];
        assert_eq!(
            (&result["exit_code"], &result["ended_by"]),
            (&json!(0), &json!("exit")),
            "{result}"
        );
        assert_eq!(
            told["links"]["out/chart.svg"], "artifact://out/chart.svg@0",
            "{}",
            told["links"]
        );
        let chart = told["chart"].as_str().unwrap();
        assert!(
            chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"),
            "{chart}"
        );
        assert_eq!(told["chart_type"], "image/svg+xml");
        assert!(
            told["listed"]
                .as_array()
                .unwrap()
                .contains(&told["links"]["out/chart.svg"])
        );
        let news = |key: &str| {
            told[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(news("told").concat().contains("\"rows\": 3"), "{:?}", news("told"));
        let slow = news("slow");
        let first = slow.iter().position(|text| text.contains("one")).unwrap();
        assert!(
            !slow[first].contains("two"),
            "what a script says comes while it runs: {slow:?}"
        );
        assert!(slow[first..].concat().contains("two"));
        assert_eq!(told["later"], "<svg", "the workspace is the session's");
        assert_eq!(told["raw"], "//4=", "two bytes that are no text");
    }
}

#[test]
fn a_cancelled_run_ends_and_the_session_goes_on() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let told = World::new().play(&python, "cancel", mode, &[], &shipped());
        assert_eq!(told["after"], "after\n");
        assert!(told["waited"].as_f64().unwrap() < 5.0, "{told}");
    }
}

#[test]
fn a_skill_that_comes_later_is_told() {
    let Some(python) = python() else { return };
    let world = World::new();
    let skills = world.path("skills");
    fs::create_dir(&skills).unwrap();
    let told = world.play(&python, "changes", "auto", &[skills.to_str().unwrap()], &skills);
    assert_eq!(told["prompts"], json!(["newcomer"]));
    assert_eq!(told["heard"], json!(["ToolsListChanged", "ResourcesListChanged"]));
}

#[test]
fn a_killed_client_leaves_no_process_and_no_workspace() {
    let Some(python) = python() else { return };
    let world = World::new();
    let mut command = program(&python);
    command
        .args(world.words("forever", "auto", &["$WORK_DIR/mark"], &shipped()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut client = start(&mut command);
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"running": true}"#);
    let sessions: Vec<_> = fs::read_dir(world.path("state/sessions")).unwrap().flatten().collect();
    let mark = sessions[0].path().join("workspace/work/mark");
    let patience = Instant::now() + Duration::from_secs(5);
    while !mark.exists() {
        assert!(Instant::now() < patience, "the run goes on in the session's workspace");
        std::thread::sleep(Duration::from_millis(10));
    }
    reap(&mut client);
    world.assert_clean();
}

#[test]
fn the_next_server_removes_what_a_killed_one_left() {
    let world = World::new();
    let mut command = program(SKILLBOX);
    command
        .args(["mcp", "--skills"])
        .arg(shipped())
        .arg("--state-dir")
        .arg(world.path("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let mut server = start(&mut command);
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("\"serverInfo\""), "{line}");
    reap(&mut server);
    assert_eq!(fs::read_dir(world.path("state/sessions")).unwrap().count(), 1);

    let ended = run_to_end(&mut command, format!("{hello}\n").as_bytes(), DEADLINE);
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "skillbox");
    world.assert_clean();
}

/// A server that listens; ended by a signal, as service managers do it.
struct Listening {
    server: Child,
    address: String,
}

impl Listening {
    fn start(world: &World) -> Self {
        let mut command = program(SKILLBOX);
        command
            .args(["mcp", "--http", "127.0.0.1:0", "--skills"])
            .arg(shipped())
            .arg("--state-dir")
            .arg(world.path("state"))
            .arg("--allow-host")
            .arg(world.path("host"))
            .stderr(Stdio::piped());
        let mut server = start(&mut command);
        let mut line = String::new();
        BufReader::new(server.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("serving ")
            .expect("where it serves")
            .to_owned();
        Self { server, address }
    }

    /// The status line of the answer to a request with these headers.
    fn ask(&self, headers: &str) -> String {
        let place = self
            .address
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/mcp")
            .unwrap();
        let mut stream = TcpStream::connect(place).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let fixed = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
        let length = body.len();
        let headers = headers.replace("PLACE", place);
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\n{headers}\r\n{fixed}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    #[track_caller]
    fn stop(mut self, world: &World) {
        let pid = Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let ended = finish(&mut self.server, Instant::now(), Duration::from_secs(15));
        assert!(ended.expect("it ends when it is told to").0.success());
        world.assert_clean();
    }
}

impl World {
    fn talk(&self, python: &OsString, address: &str, scenario: &str, mode: &str, own: &[&str]) -> Value {
        let mut command = program(python);
        command
            .arg(root().join("tests/mcp/client.py"))
            .args([scenario, mode, address])
            .args(own);
        let ended = run_to_end(&mut command, b"", DEADLINE);
        assert!(
            ended.status.success(),
            "{scenario} {mode}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
        serde_json::from_slice(&ended.stdout).unwrap()
    }
}

#[test]
fn over_http_clients_have_sessions_or_carry_a_handle() {
    let Some(python) = python() else { return };
    let world = World::new();
    let csv = world.path("host/sales.csv");
    fs::write(&csv, "date,revenue\n2024-01-01,10\n2024-02-01,20\n2024-03-01,15\n").unwrap();
    let server = Listening::start(&world);
    let told = world.talk(&python, &server.address, "report", "legacy", &[csv.to_str().unwrap()]);
    assert!(told["chart"].as_str().unwrap().starts_with("<svg"));
    let told = world.talk(&python, &server.address, "cancel", "legacy", &[]);
    assert_eq!(told["after"], "after\n");
    let told = world.talk(&python, &server.address, "handle", "auto", &[]);
    assert_eq!((&told["later"], &told["read"]), (&json!("kept\n"), &json!("kept\n")));
    assert_eq!(told["stranger"], 1, "another session has another workspace");
    assert_eq!(told["refused"].as_array().unwrap().len(), 2, "{told}");
    server.stop(&world);
}

#[test]
fn web_pages_and_other_names_of_this_machine_are_refused() {
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
