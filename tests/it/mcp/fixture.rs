//! Support for the tests of the MCP server: peers from PyPI, a directory for each test, a server over HTTP.

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

use crate::harness::{orphans, program, run_to_completion, spawn_tracked, wait_until, wait_with_deadline};
use crate::workspace::root;

/// Python environments with client packages; `tests/run` installs them and exports their paths.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// `mcp`, the SDK of the protocol.
    Sdk,
    /// `langchain-mcp-adapters`, `deepagents` and `openai`.
    Agents,
    /// `fastmcp`.
    FastMcp,
    /// `pydantic-ai-slim`.
    PydanticAi,
    /// `openai-agents`.
    OpenAiAgents,
    /// Not Python: the `node_modules` of the TypeScript SDKs and the MCP Inspector, with Node.js.
    Npm,
}

impl Peer {
    fn variable(self) -> (&'static str, &'static str) {
        match self {
            Self::Sdk => ("SKILLBOX_MCP_PYTHON", "mcp"),
            Self::Agents => ("SKILLBOX_AGENTS_PYTHON", "deepagents"),
            Self::FastMcp => ("SKILLBOX_FASTMCP_PYTHON", "fastmcp"),
            Self::PydanticAi => ("SKILLBOX_PYDANTIC_AI_PYTHON", "pydantic-ai-slim"),
            Self::OpenAiAgents => ("SKILLBOX_OPENAI_AGENTS_PYTHON", "openai-agents"),
            Self::Npm => ("SKILLBOX_MCP_MODULES", "@modelcontextprotocol/inspector"),
        }
    }
}

pub const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");
/// How long a scenario may take, on a busy machine too.
pub const SCENARIO_DEADLINE: Duration = Duration::from_secs(120);
/// How a client begins: with a session, and without.
pub const MODES: [&str; 2] = ["legacy", "auto"];

#[expect(clippy::disallowed_methods, reason = "tests/run exports which peers there are")]
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
pub fn python_for(peer: Peer) -> Option<OsString> {
    let (variable, package) = peer.variable();
    let python = env::var_os(variable);
    if python.is_none() {
        let reason = format!("{variable} does not name an installation of {package}");
        let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "not skipped in CI: {reason}");
        eprintln!("skipped: {reason}");
    }
    python
}

/// The Python with the SDK.
pub fn python() -> Option<OsString> {
    python_for(Peer::Sdk)
}

/// A Python that writes no byte code into the source tree.
pub fn client(python: &OsString) -> Command {
    let mut command = program(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A temporary directory with the state of the servers that a test starts.
pub struct McpFixture {
    dir: TempDir,
}

impl McpFixture {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("skillbox-mcp-").tempdir().unwrap();
        fs::create_dir(dir.path().join("host")).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn scenario_args(&self, scenario: &str, mode: &str, own: &[&str], skills: &Path) -> Vec<OsString> {
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

    /// Runs a scenario over standard input and output and returns its result. Fails when the session leaves anything.
    #[track_caller]
    pub fn run_scenario(&self, python: &OsString, scenario: &str, mode: &str, own: &[&str], skills: &Path) -> Value {
        let mut command = client(python);
        command.args(self.scenario_args(scenario, mode, own, skills));
        let ended = run_to_completion(&mut command, b"", SCENARIO_DEADLINE);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{scenario} {mode}: {stderr}");
        self.assert_clean();
        let line = String::from_utf8(ended.stdout).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn leftovers(&self) -> Vec<String> {
        let mut leftovers: Vec<String> = orphans().iter().map(|pid| format!("process {pid}")).collect();
        for place in ["state/sessions", "state/artifacts/artifacts", "state/scratch"] {
            let entries = fs::read_dir(self.path(place)).into_iter().flatten().flatten();
            leftovers.extend(entries.map(|entry| entry.path().display().to_string()));
        }
        leftovers
    }

    /// Waits until no session has left anything. The server may go on.
    #[track_caller]
    pub fn assert_clean(&self) {
        wait_until("no session has left anything", || self.leftovers().is_empty());
    }
}

/// The skills of the repository.
pub fn shipped_skills() -> PathBuf {
    root().join("skills")
}

/// A server over HTTP, ended by a signal as service managers do.
pub struct McpHttpServer {
    server: Child,
    pub address: String,
}

impl McpHttpServer {
    pub fn start(fixture: &McpFixture) -> Self {
        Self::start_as(fixture, &mut program(SKILLBOX))
    }

    /// Starts one by a prepared command.
    pub fn start_as(fixture: &McpFixture, command: &mut Command) -> Self {
        command
            .args(["mcp", "--http", "127.0.0.1:0", "--skills"])
            .arg(shipped_skills())
            .arg("--state-dir")
            .arg(fixture.path("state"))
            .arg("--allow-host")
            .arg(fixture.path("host"));
        Self::wait_for(command)
    }

    /// Starts a command that prints the server's address on standard error.
    pub fn wait_for(command: &mut Command) -> Self {
        let mut server = spawn_tracked(command.stderr(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(server.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("serving ")
            .expect("the address of the server")
            .to_owned();
        Self { server, address }
    }

    /// Its host and port.
    pub fn host_and_port(&self) -> &str {
        self.address
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/mcp")
            .unwrap()
    }

    /// Sends an initialize request with these headers and returns the status line of the response.
    pub fn status_line(&self, headers: &str) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        self.status_line_for(headers, body.as_bytes())
    }

    /// Does the same with any body.
    pub fn status_line_for(&self, headers: &str, body: &[u8]) -> String {
        let address = self.host_and_port();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SCENARIO_DEADLINE)).unwrap();
        let fixed = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
        let length = body.len();
        let headers = headers.replace("ADDRESS", address);
        let head = format!("POST /mcp HTTP/1.1\r\n{headers}\r\n{fixed}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses a request does not read all of it.
        let _unread = stream.write_all(body);
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    #[track_caller]
    pub fn stop(mut self, fixture: &McpFixture) {
        let pid = Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let ended = wait_with_deadline(&mut self.server, Instant::now(), SCENARIO_DEADLINE);
        assert!(ended.expect("the server ends after a signal").0.success());
        fixture.assert_clean();
    }
}

impl McpFixture {
    /// Runs a scenario against a server over HTTP and returns its result.
    #[track_caller]
    pub fn run_scenario_over_http(
        &self,
        python: &OsString,
        address: &str,
        scenario: &str,
        mode: &str,
        own: &[&str],
    ) -> Value {
        let mut command = client(python);
        command
            .arg(root().join("tests/mcp/client.py"))
            .args([scenario, mode, address])
            .args(own);
        let ended = run_to_completion(&mut command, b"", SCENARIO_DEADLINE);
        assert!(
            ended.status.success(),
            "{scenario} {mode}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
        serde_json::from_slice(&ended.stdout).unwrap()
    }
}
