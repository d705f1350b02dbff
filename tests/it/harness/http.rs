//! `skillbox serve` for tests, and a client that sends exactly the given bytes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::machine_load::{CONDITION_TIMEOUT, wait_until};
use super::process::{kill_and_reap, orphans, program, spawn_tracked, wait_with_deadline};
use crate::workspace::root;

const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");

/// A server with a state directory of its own, which ends with the test.
pub struct HttpServer {
    server: Child,
    /// Host and port, such as `127.0.0.1:41143`.
    pub address: String,
    dir: TempDir,
    log: Arc<Mutex<String>>,
    has_exited: bool,
}

/// A whole response.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpServer {
    /// Starts a server on the shipped skills with these arguments. Returns it with a token for each of the tenants.
    pub fn start(arguments: &[&str], tenants: &[&str]) -> (Self, Vec<String>) {
        Self::start_under(&[], arguments, tenants)
    }

    /// Does the same with a launcher, such as a shell that sets limits and executes its arguments.
    pub fn start_under(launcher: &[&str], arguments: &[&str], tenants: &[&str]) -> (Self, Vec<String>) {
        let dir = tempfile::Builder::new().prefix("skillbox-http-").tempdir().unwrap();
        let (tokens, lines): (Vec<_>, Vec<_>) = {
            let state_dir = dir.path().join("state");
            tenants.iter().map(|tenant| create_token(tenant, &state_dir)).unzip()
        };
        let config = if lines.is_empty() {
            String::new()
        } else {
            format!("tokens = {lines:?}\n")
        };
        fs::write(dir.path().join("skillbox.toml"), config).unwrap();
        let mut words = launcher.iter().copied().chain([SKILLBOX]);
        let mut command = program(words.next().unwrap_or(SKILLBOX));
        command
            .args(words)
            .args(["serve", "--listen", "127.0.0.1:0", "--skills"])
            .arg(root().join("skills"))
            .arg("--state-dir")
            .arg(dir.path().join("state"))
            .arg("--config")
            .arg(dir.path().join("skillbox.toml"))
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut server = spawn_tracked(&mut command);
        let mut stderr = BufReader::new(server.stderr.take().unwrap());
        let mut earlier_lines = String::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(
                stderr.read_line(&mut line).unwrap(),
                0,
                "it does not serve: {earlier_lines}"
            );
            // Log lines may precede the address; with a log, it is in one of them.
            let logged = serde_json::from_str::<Value>(&line).ok();
            let logged = logged.as_ref().and_then(|event| event["address"].as_str());
            let address = logged.or(line.trim().strip_prefix("serving "));
            let address = address.and_then(|address| address.strip_prefix("http://").map(str::to_owned));
            earlier_lines.push_str(&line);
            if let Some(address) = address {
                break address;
            }
        };
        // The pipe is read until the end, so that it never blocks the server.
        let log = Arc::new(Mutex::new(earlier_lines));
        std::thread::spawn({
            let log = log.clone();
            move || {
                for line in stderr.lines().map_while(Result::ok) {
                    log.lock().unwrap().push_str(&(line + "\n"));
                }
            }
        });
        let server = Self {
            server,
            address,
            dir,
            log,
            has_exited: false,
        };
        (server, tokens)
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// What it has written to standard error.
    pub fn log_text(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// A path below the state directory.
    pub fn state_path(&self, name: &str) -> PathBuf {
        self.dir.path().join("state").join(name)
    }

    /// Its config file.
    pub fn config_path(&self) -> PathBuf {
        self.dir.path().join("skillbox.toml")
    }

    /// Opens a connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(CONDITION_TIMEOUT)).unwrap();
        stream
    }

    /// Sends a request and returns the connection, unread.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses a request may close the connection before it has read the body.
        let _refused = stream.write_all(body);
        stream
    }

    /// Sends a request and reads the response.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        HttpResponse::read(self.send(method, path, headers, body))
    }

    /// Sends a request with a JSON body, and with a token unless it is empty.
    pub fn request_json(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> HttpResponse {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![];
        if !token.is_empty() {
            headers.push(("Authorization", bearer.as_str()));
        }
        if body.is_some() {
            headers.push(("Content-Type", "application/json"));
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.request(method, path, &headers, &body)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let exited = wait_with_deadline(&mut self.server, Instant::now(), CONDITION_TIMEOUT);
        self.has_exited = true;
        exited
            .unwrap_or_else(|| panic!("the server did not end within {CONDITION_TIMEOUT:?}"))
            .0
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if !self.has_exited {
            kill_and_reap(&mut self.server);
        }
        if !std::thread::panicking() {
            wait_until("the end of every process of the server", || orphans().is_empty());
        }
    }
}

/// A new token, and its line for the configuration. After the name of the tenant may be options.
fn create_token(tenant: &str, state_dir: &Path) -> (String, String) {
    let output = program(SKILLBOX)
        .args(["serve", "token", "--json", "--state-dir"])
        .arg(state_dir)
        .args(tenant.split(' '))
        .output()
        .unwrap();
    let token: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |key: &str| token[key].as_str().unwrap().to_owned();
    (text("token"), text("line"))
}

impl HttpResponse {
    /// Reads a response to the end of its connection.
    pub fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let count = reader.read_line(&mut line).unwrap_or(0);
            let line = line.trim_end().to_owned();
            if count == 0 || line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.iter().skip(1).filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        });
        let mut response = Self {
            status: status.unwrap_or(0),
            headers: headers.collect(),
            body: Vec::new(),
        };
        let mut rest = Vec::new();
        let _cut_off = reader.read_to_end(&mut rest);
        response.body = if response.header("transfer-encoding") == Some("chunked") {
            join_chunks(&rest)
        } else {
            rest
        };
        response
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// The status and the code of an error, which is the error object of the contract.
    #[track_caller]
    pub fn error(&self) -> (u16, String) {
        let value = self.json();
        assert_eq!(self.header("content-type"), Some("application/json"));
        let message = value["error"]["message"].as_str();
        assert!(message.is_some_and(|text| !text.is_empty()), "{value}");
        (self.status, value["error"]["code"].as_str().unwrap().to_owned())
    }

    /// The JSON body of a response with this status. Fails the test when the status is another one.
    #[track_caller]
    pub fn expect_status(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

fn join_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[(end + 4 + size).min(rest.len())..];
    }
    whole
}
