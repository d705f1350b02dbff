//! What the tests of the MCP server stand on: peers from PyPI, a place of its own for each test, a server that listens.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{finish, orphans, program, run_to_end, start};
use crate::workspace::root;

/// Pythons with packages of ours to talk with; `tests/run` makes them and sets these.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// `mcp`, the SDK of the protocol.
    Sdk,
    /// `langchain-mcp-adapters`, `deepagents` and `openai`.
    Agents,
}

impl Peer {
    fn variable(self) -> (&'static str, &'static str) {
        match self {
            Self::Sdk => ("SKILLBOX_MCP_PYTHON", "mcp"),
            Self::Agents => ("SKILLBOX_AGENTS_PYTHON", "deepagents"),
        }
    }
}

pub const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");
pub const DEADLINE: Duration = Duration::from_secs(60);
/// With a session, and without.
pub const MODES: [&str; 2] = ["legacy", "auto"];

#[expect(
    clippy::disallowed_methods,
    reason = "a test learns from tests/run what peers there are"
)]
#[expect(clippy::print_stderr, reason = "a skipped test says so, and why")]
pub fn python_with(peer: Peer) -> Option<OsString> {
    let (variable, package) = peer.variable();
    let python = env::var_os(variable);
    if python.is_none() {
        let reason = format!("{variable} does not name a Python with the package {package}");
        let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "not skipped in CI: {reason}");
        eprintln!("skipped: {reason}");
    }
    python
}

/// The Python that has the SDK.
pub fn python() -> Option<OsString> {
    python_with(Peer::Sdk)
}

/// A Python that leaves nothing in the source tree.
pub fn client(python: &OsString) -> Command {
    let mut command = program(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A place of its own, with the state of the servers that are started in it.
pub struct World {
    dir: TempDir,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("skillbox-mcp-").tempdir().unwrap();
        fs::create_dir(dir.path().join("host")).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn words(&self, scenario: &str, mode: &str, own: &[&str], skills: &Path) -> Vec<OsString> {
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
    pub fn play(&self, python: &OsString, scenario: &str, mode: &str, own: &[&str], skills: &Path) -> Value {
        let mut command = client(python);
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

    /// Soon nothing is left of any session, though the server may go on.
    #[track_caller]
    pub fn assert_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.left().is_empty() {
            assert!(Instant::now() < deadline, "left behind: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The skills of the project.
pub fn shipped() -> PathBuf {
    root().join("skills")
}

/// A server that listens; ended by a signal, as service managers do it.
pub struct Listening {
    server: Child,
    pub address: String,
}

impl Listening {
    pub fn start(world: &World) -> Self {
        Self::start_as(world, &mut program(SKILLBOX))
    }

    /// The same, of a program and surroundings that the caller has chosen.
    pub fn start_as(world: &World, command: &mut Command) -> Self {
        command
            .args(["mcp", "--http", "127.0.0.1:0", "--skills"])
            .arg(shipped())
            .arg("--state-dir")
            .arg(world.path("state"))
            .arg("--allow-host")
            .arg(world.path("host"));
        Self::wait_for(command)
    }

    /// A server that says on its standard error where it listens.
    pub fn wait_for(command: &mut Command) -> Self {
        let mut server = start(command.stderr(Stdio::piped()));
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

    /// Its host and port.
    pub fn place(&self) -> &str {
        self.address
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/mcp")
            .unwrap()
    }

    /// The status line of the answer to a request with these headers.
    pub fn ask(&self, headers: &str) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        self.ask_with(headers, body.as_bytes())
    }

    /// The same for any body.
    pub fn ask_with(&self, headers: &str, body: &[u8]) -> String {
        let place = self.place();
        let mut stream = TcpStream::connect(place).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let fixed = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
        let length = body.len();
        let headers = headers.replace("PLACE", place);
        let head = format!("POST /mcp HTTP/1.1\r\n{headers}\r\n{fixed}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that has heard enough does not read the rest.
        let _unread = stream.write_all(body);
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    #[track_caller]
    pub fn stop(mut self, world: &World) {
        let pid = Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let ended = finish(&mut self.server, Instant::now(), Duration::from_secs(15));
        assert!(ended.expect("it ends when it is told to").0.success());
        world.assert_clean();
    }
}

impl World {
    pub fn talk(&self, python: &OsString, address: &str, scenario: &str, mode: &str, own: &[&str]) -> Value {
        let mut command = client(python);
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
