//! 3.12: requests that exhaust the memory of a server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::harness::{HttpServer, need, wait_until};

const MIB: u64 = 1 << 20;

fn resident_bytes(server: &HttpServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Starts a request with a JSON body that never ends.
fn send_unfinished_body(server: &HttpServer, token: &str, received: usize) -> TcpStream {
    let mut stream = server.connect();
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let address = &server.address;
    write!(
        stream,
        "POST /v1/runs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n{{\"skill\":\""
    )
    .unwrap();
    // The server reads no more while its memory is in use, and closes the connection when it refuses the request.
    let _refused = stream.write_all(&vec![b'x'; received]);
    stream
}

#[test]
fn h175_unfinished_bodies_share_a_bounded_memory() {
    let (server, tokens) = HttpServer::start(&["--max-buffered", "16777216"], &["greedy", "other"]);
    let run = json!({"skill": "python-math", "command": "true"});
    let run_as = |token: &str| server.request_json(token, "POST", "/v1/runs?wait=100", Some(&run));
    run_as(&tokens[1]).expect_status(200);
    let before = resident_bytes(&server);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..60)
            .map(|_| scope.spawn(|| send_unfinished_body(&server, &tokens[0], 2_000_000)))
            .collect();
        run_as(&tokens[1]).expect_status(200);
        let streams: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        let used = resident_bytes(&server).saturating_sub(before);
        assert!(used < 64 * MIB, "60 unfinished bodies of 2 MB use {} MiB", used / MIB);
        run_as(&tokens[1]).expect_status(200);
        drop(streams);
    });
    wait_until("the first tenant is served again", || run_as(&tokens[0]).status == 200);
}

#[test]
fn h176_a_body_of_many_values_is_refused_before_it_is_parsed() {
    let (server, _) = HttpServer::start(&[], &[]);
    let json_type = [("Content-Type", "application/json")];
    let before = resident_bytes(&server);
    let body = format!(r#"{{"skill":"python-math","args":[{}""]}}"#, r#""","#.repeat(2_000_000));
    let refused = server.request("POST", "/v1/runs", &json_type, body.as_bytes());
    assert_eq!(refused.error(), (413, "limit_exceeded".to_owned()));
    let used = resident_bytes(&server).saturating_sub(before);
    assert!(used < 64 * MIB, "a body of 6 MB uses {} MiB", used / MIB);
    // A body of the same size with one long text is a request.
    let run = json!({"skill": "python-math", "command": "wc -c", "stdin": "x".repeat(6_000_000)});
    let report = server.request_json("", "POST", "/v1/runs?wait=100", Some(&run));
    assert_eq!(report.expect_status(200)["stdout"], "6000000\n");
}

/// A control group of version 1 with a memory limit, removed with the test.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn create(bytes: u64) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/memory/skillbox-test-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        fs::write(group.0.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        wait_until("the control group is removed", || fs::remove_dir(&self.0).is_ok());
    }
}

/// A client that makes runs over one connection, which it opened before the server is under pressure.
struct RunClient {
    stream: TcpStream,
    head: String,
}

impl RunClient {
    fn new(server: &HttpServer, token: &str) -> Self {
        let body = json!({"skill": "python-math", "command": "true"}).to_string();
        let head = format!(
            "POST /v1/runs?wait=100 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        Self {
            stream: server.connect(),
            head,
        }
    }

    fn run(&mut self) -> Duration {
        let started = Instant::now();
        self.stream.write_all(self.head.as_bytes()).unwrap();
        let mut received = Vec::new();
        let mut buffer = [0; 65_536];
        loop {
            let count = self.stream.read(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&received).into_owned();
            assert_ne!(count, 0, "the connection ended: {text}");
            received.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&received);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.is_some_and(|length| body.len() >= length.trim().parse().unwrap()) {
                assert!(head.starts_with("http/1.1 200"), "{text}");
                return started.elapsed();
            }
        }
    }

    fn percentile(durations: &mut [Duration], percent: usize) -> Duration {
        durations.sort_unstable();
        durations[(durations.len() * percent / 100).min(durations.len() - 1)]
    }
}

/// The battery in a short form. With `SKILLBOX_TEST_BATTERY=full` it opens 10,000 connections, lasts a minute, and the
/// times of the other tenant are compared.
#[test]
#[expect(clippy::disallowed_methods, reason = "the caller chooses the long form")]
fn h177_a_small_server_survives_the_battery_beside_another_tenant() {
    let is_full = std::env::var_os("SKILLBOX_TEST_BATTERY").is_some_and(|value| value == "full");
    let (connections, duration) = if is_full { (10_000, 60) } else { (600, 5) };
    let Some(group) = MemoryGroup::create(256 * MIB) else {
        need(false, "a control group of version 1 that limits memory");
        return;
    };
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let enter = format!(
        "echo $$ > {}/cgroup.procs && ulimit -n 1024 && exec \"$@\"",
        group.0.display()
    );
    let (server, tokens) = HttpServer::start_under(&["bash", "-c", &enter, "bash"], &[], &["greedy", "other"]);
    let mut client = RunClient::new(&server, &tokens[1]);
    client.run();
    let mut quiet: Vec<Duration> = (0..50).map(|_| client.run()).collect();
    let quiet_median = RunClient::percentile(&mut quiet, 50);
    let is_over = AtomicBool::new(false);
    let mut busy = Vec::new();
    let greedy = &tokens[0];
    let attack = |work: &(dyn Fn() + Sync)| {
        while !is_over.load(Ordering::Relaxed) {
            work();
        }
    };
    let huge = json!({"skill": "python-math", "command": "head -c 30000000 /dev/zero > out/x",
        "outputs": {"globs": ["out/*"], "inline_binary": true, "max_file_bytes": 4 * MIB}});
    let refused = json!({"skill": "missing", "command": "true"});
    let (server, huge, refused) = (&server, &huge, &refused);
    std::thread::scope(|scope| {
        scope.spawn(move || attack(&|| drop(server.request_json(greedy, "POST", "/v1/runs?wait=100", Some(huge)))));
        scope.spawn(move || attack(&|| drop(server.request_json(greedy, "POST", "/v1/runs", Some(refused)))));
        for _ in 0..4 {
            scope.spawn(move || attack(&|| drop(send_unfinished_body(server, greedy, 4_000_000))));
        }
        scope.spawn(move || {
            attack(&|| {
                let address = &server.address;
                let mut stream = server.connect();
                let head = format!(
                    "PUT /v1/artifacts/x HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {greedy}\r\n\
                     Content-Length: 5000\r\n\r\n"
                );
                for byte in head.bytes().chain(*b"slow") {
                    let _closed = stream.write_all(&[byte]);
                }
            });
        });
        let idle = scope.spawn(move || -> Vec<_> {
            (0..connections)
                .map_while(|_| TcpStream::connect(&server.address).ok())
                .collect()
        });
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(duration) {
            busy.push(client.run());
        }
        is_over.store(true, Ordering::Relaxed);
        drop(idle.join().unwrap());
    });
    let slowest = RunClient::percentile(&mut busy, 99);
    println!("{} runs: quiet p50 {quiet_median:?}, busy p99 {slowest:?}", busy.len());
    assert!(
        !is_full || slowest <= quiet_median * 10,
        "p99 {slowest:?}, quiet p50 {quiet_median:?}"
    );
    client.run();
}
