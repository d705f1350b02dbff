//! Receivers of audit records on loopback: a syslog server, an HTTP collector, and rsyslog.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::process::{kill_and_reap, program, spawn_tracked};

/// What a syslog server does with its next connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyslogBehaviour {
    /// It reads all messages and closes the connection.
    Reads,
    /// It dies after so many bytes: the connection is reset, and what it read is lost.
    DiesAfter(usize),
    /// It reads nothing and does not close the connection.
    Hangs,
}

/// A syslog server over TCP, for messages with octet counting.
pub struct SyslogServer {
    port: u16,
    behaviour: Arc<Mutex<SyslogBehaviour>>,
    messages: Arc<Mutex<Vec<String>>>,
}

impl SyslogServer {
    pub fn start() -> Self {
        Self::start_on(&TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Starts a server on a listener that refused its connections so far by not accepting them.
    pub fn start_on(listener: &TcpListener) -> Self {
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            behaviour: Arc::new(Mutex::new(SyslogBehaviour::Reads)),
            messages: Arc::default(),
        };
        let (listener, behaviour, messages) = (
            listener.try_clone().unwrap(),
            server.behaviour.clone(),
            server.messages.clone(),
        );
        // The thread ends with the tests.
        std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let now = *behaviour.lock().unwrap();
                match now {
                    SyslogBehaviour::Reads => read_messages(stream, &messages),
                    SyslogBehaviour::DiesAfter(bytes) => {
                        let _read = (&stream).take(bytes as u64).read_to_end(&mut Vec::new());
                        // Closing a socket with unread data resets the connection.
                        drop(stream);
                    }
                    SyslogBehaviour::Hangs => hanging.push(stream),
                }
            }
        });
        server
    }

    pub fn address(&self) -> String {
        format!("syslog+tcp://127.0.0.1:{}", self.port)
    }

    pub fn set_behaviour(&self, behaviour: SyslogBehaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub fn messages(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }

    /// The sequence numbers of the records, in the order of their arrival.
    pub fn sequences(&self) -> Vec<u64> {
        self.messages().iter().map(|message| sequence(message)).collect()
    }
}

/// The sequence number of the record in a syslog message.
#[track_caller]
pub fn sequence(message: &str) -> u64 {
    let json = &message[message.find('{').unwrap()..];
    let record: Value = serde_json::from_str(json).unwrap();
    record["metadata"]["sequence"].as_u64().unwrap()
}

fn read_messages(stream: TcpStream, messages: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = Vec::new();
        if reader.read_until(b' ', &mut length).unwrap_or(0) == 0 {
            return;
        }
        let length: usize = String::from_utf8(length).unwrap().trim().parse().unwrap();
        let mut message = vec![0; length];
        if reader.read_exact(&mut message).is_err() {
            return;
        }
        messages.lock().unwrap().push(String::from_utf8(message).unwrap());
    }
}

/// One request that a collector received.
#[derive(Clone, Debug)]
pub struct CollectedRequest {
    pub head: String,
    pub body: String,
}

/// An HTTP collector that answers each request with the next of its responses, and the last one again.
pub struct Collector {
    port: u16,
    requests: Arc<Mutex<Vec<CollectedRequest>>>,
}

impl Collector {
    /// Starts a collector. A response is a status line with headers, such as `204 No Content`.
    pub fn start(responses: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = Self {
            port: listener.local_addr().unwrap().port(),
            requests: Arc::default(),
        };
        let responses: Vec<String> = responses.iter().map(|response| (*response).to_owned()).collect();
        let requests = collector.requests.clone();
        std::thread::spawn(move || {
            for (index, mut stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let Some(request) = read_request(&stream) else { continue };
                requests.lock().unwrap().push(request);
                let response = &responses[index.min(responses.len() - 1)];
                let _closed = write!(
                    stream,
                    "HTTP/1.1 {response}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
        });
        collector
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/audit", self.port)
    }

    pub fn requests(&self) -> Vec<CollectedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<CollectedRequest> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(CollectedRequest {
        head,
        body: String::from_utf8(body).ok()?,
    })
}

/// rsyslog, which writes the parts of each message to a file.
pub struct Rsyslog {
    daemon: Child,
    dir: tempfile::TempDir,
    ports: [u16; 2],
}

impl Rsyslog {
    /// Starts the rsyslog that Debian's packages were unpacked to: `root/usr/sbin/rsyslogd` and its libraries.
    pub fn start(root: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("rsyslog-").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // Free ports for a moment; rsyslog reports a port that was taken since then.
        let free_port = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let ports = [free_port(), free_port()];
        let path = |name: &str| dir.path().join(name).display().to_string();
        let config = format!(
            "global(workDirectory=\"{}\" maxMessageSize=\"1m\")\n\
             module(load=\"imtcp\")\nmodule(load=\"imudp\")\nmodule(load=\"imuxsock\" SysSock.Use=\"off\")\n\
             input(type=\"imtcp\" address=\"127.0.0.1\" port=\"{}\")\n\
             input(type=\"imudp\" address=\"127.0.0.1\" port=\"{}\")\n\
             input(type=\"imuxsock\" Socket=\"{}\" UsePIDFromSystem=\"off\" UseSpecialParser=\"off\" ParseHostname=\"on\")\n\
             template(name=\"parts\" type=\"string\" string=\"%pri-text%|%msgid%|%hostname%|%app-name%|%structured-data%|%msg%\\n\")\n\
             action(type=\"omfile\" file=\"{}\" template=\"parts\")\n",
            dir.path().display(),
            ports[0],
            ports[1],
            path("socket"),
            path("received"),
        );
        fs::write(dir.path().join("rsyslog.conf"), config).unwrap();
        let libraries = fs::read_dir(root.join("usr/lib"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let libraries: Vec<PathBuf> = libraries.filter(|path| path.join("rsyslog").is_dir()).collect();
        let mut command = program(root.join("usr/sbin/rsyslogd"));
        command
            .env("LD_LIBRARY_PATH", &libraries[0])
            .args(["-n", "-C", "-i", &path("pid"), "-f", &path("rsyslog.conf"), "-M"])
            .arg(libraries[0].join("rsyslog"));
        let daemon = spawn_tracked(&mut command);
        let rsyslog = Self { daemon, dir, ports };
        super::wait_until("rsyslog listens", || {
            TcpStream::connect_timeout(&([127, 0, 0, 1], ports[0]).into(), Duration::from_secs(1)).is_ok()
                && rsyslog.dir.path().join("socket").exists()
        });
        rsyslog
    }

    /// Its addresses: TCP, UDP and a socket.
    pub fn addresses(&self) -> [String; 3] {
        [
            format!("syslog+tcp://127.0.0.1:{}", self.ports[0]),
            format!("syslog+udp://127.0.0.1:{}", self.ports[1]),
            format!("syslog+unix:{}", self.dir.path().join("socket").display()),
        ]
    }

    /// The messages so far: severity, message id, host, program, structured data and text, separated by `|`.
    pub fn received(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("received")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        kill_and_reap(&mut self.daemon);
    }
}
