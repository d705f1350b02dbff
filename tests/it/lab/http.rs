//! `skillbox serve` for tests, and a client that sends exactly what it is told to.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::process::{finish, orphans, program, reap, start};
use crate::workspace::root;

const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with a state directory of its own; killed with the test.
pub struct HttpServer {
    server: Child,
    /// Such as `127.0.0.1:41143`.
    pub place: String,
    dir: TempDir,
    said: Arc<Mutex<String>>,
    is_over: bool,
}

/// An answer, whole.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpServer {
    /// Starts one on the shipped skills with these arguments, and a token for each of these tenants.
    pub fn start(arguments: &[&str], tenants: &[&str]) -> (Self, Vec<String>) {
        let dir = tempfile::Builder::new().prefix("skillbox-http-").tempdir().unwrap();
        let (tokens, lines): (Vec<_>, Vec<_>) = tenants.iter().map(|tenant| token(tenant)).unzip();
        let config = if lines.is_empty() {
            String::new()
        } else {
            format!("tokens = {lines:?}\n")
        };
        fs::write(dir.path().join("skillbox.toml"), config).unwrap();
        let mut command = program(SKILLBOX);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--skills"])
            .arg(root().join("skills"))
            .arg("--state-dir")
            .arg(dir.path().join("state"))
            .arg("--config")
            .arg(dir.path().join("skillbox.toml"))
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut server = start(&mut command);
        let mut told = BufReader::new(server.stderr.take().unwrap());
        let mut heard = String::new();
        let place = loop {
            let mut line = String::new();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "it does not serve: {heard}");
            // The log may have begun before.
            if let Some(place) = line.trim().strip_prefix("serving http://") {
                break place.to_owned();
            }
            heard.push_str(&line);
        };
        // What it says later must not stop it.
        let said = Arc::new(Mutex::new(String::new()));
        std::thread::spawn({
            let said = said.clone();
            move || {
                for line in told.lines().map_while(Result::ok) {
                    said.lock().unwrap().push_str(&(line + "\n"));
                }
            }
        });
        let server = Self {
            server,
            place,
            dir,
            said,
            is_over: false,
        };
        (server, tokens)
    }

    /// What it said since it serves.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// A path below the state directory.
    pub fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join("state").join(name)
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.place).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and gives the connection back, unread.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.place));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that has read enough may close before it has read all.
        let _refused = stream.write_all(body);
        stream
    }

    /// A request and its answer.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpAnswer {
        HttpAnswer::read(self.send(method, path, headers, body))
    }

    /// The same with JSON as body, and a token where there is one.
    pub fn json(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> HttpAnswer {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![];
        if !token.is_empty() {
            headers.push(("Authorization", bearer.as_str()));
        }
        if body.is_some() {
            headers.push(("Content-Type", "application/json"));
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.ask(method, path, &headers, &body)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub fn ended(&mut self, within: Duration) -> ExitStatus {
        let ended = finish(&mut self.server, Instant::now(), within);
        self.is_over = true;
        ended.unwrap_or_else(|| panic!("it did not end within {within:?}")).0
    }

    /// Waits until a condition holds.
    #[track_caller]
    pub fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Pids of processes with this word among their arguments.
    pub fn running(&self, word: &str) -> Vec<i32> {
        let has_word = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|argument| argument == word.as_bytes())
        };
        let all = super::process::all_processes().into_iter().map(|(pid, ..)| pid);
        all.filter(has_word).collect()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if !self.is_over {
            reap(&mut self.server);
        }
        if !std::thread::panicking() {
            let end = Instant::now() + Duration::from_secs(5);
            while !orphans().is_empty() {
                assert!(Instant::now() < end, "left behind: {:?}", orphans());
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// A new token, and its line.
fn token(tenant: &str) -> (String, String) {
    let output = program(SKILLBOX)
        .args(["serve", "token", tenant, "--json"])
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    (text("token"), text("line"))
}

impl HttpAnswer {
    /// Reads an answer to the end of its connection.
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
        let mut answer = Self {
            status: status.unwrap_or(0),
            headers: headers.collect(),
            body: Vec::new(),
        };
        let mut rest = Vec::new();
        let _cut_off = reader.read_to_end(&mut rest);
        answer.body = if answer.header("transfer-encoding") == Some("chunked") {
            unchunked(&rest)
        } else {
            rest
        };
        answer
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// The status and the code of an error, which is the contract's object.
    #[track_caller]
    pub fn error(&self) -> (u16, String) {
        let value = self.value();
        assert_eq!(self.header("content-type"), Some("application/json"));
        let message = value["error"]["message"].as_str();
        assert!(message.is_some_and(|text| !text.is_empty()), "{value}");
        (self.status, value["error"]["code"].as_str().unwrap().to_owned())
    }

    /// The value of an answer that is what was asked for.
    #[track_caller]
    pub fn good(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() {
            Value::Null
        } else {
            self.value()
        }
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
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
