//! Runs over HTTP: followed, replayed, cancelled, and ended with their caller or their server.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{HttpAnswer, HttpServer};

fn begin(server: &HttpServer, command: &str) -> String {
    let run = json!({"skill": "python-math", "command": command});
    let begun = server.json("", "POST", "/v1/runs", Some(&run)).good(202);
    begun["run_id"].as_str().unwrap().to_owned()
}

/// The events of a stream that has ended: id, name, data.
fn events(answer: &HttpAnswer) -> Vec<(u64, String, Value)> {
    let blocks = answer.text();
    let blocks = blocks.split("\n\n").filter(|block| block.contains("data:"));
    let field = |block: &str, name: &str| {
        let found = block.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} in {block:?}")).trim().to_owned()
    };
    blocks
        .map(|block| {
            let data = serde_json::from_str(&field(block, "data:")).unwrap();
            (field(block, "id:").parse().unwrap(), field(block, "event:"), data)
        })
        .collect()
}

#[test]
fn a_run_is_followed_as_it_goes_and_told_again() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = begin(&server, "for i in 1 2 3; do echo $i; sleep 0.2; done");
    let path = format!("/v1/runs/{id}/events");
    let mut stream = BufReader::new(server.send("GET", &path, &[], b""));
    let mut seen = String::new();
    while !seen.contains("\"text\":\"1\\n\"") {
        assert_ne!(stream.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    assert!(
        !seen.contains("\"text\":\"3\\n\""),
        "events come while the run goes on: {seen}"
    );

    let all = events(&server.ask("GET", &path, &[], b""));
    let names: Vec<&str> = all.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["accepted", "staged", "started"]);
    assert_eq!(names[names.len() - 3..], ["ended", "collected", "done"]);
    assert_eq!(
        all.iter().map(|(id, ..)| *id).collect::<Vec<_>>(),
        (1..=all.len() as u64).collect::<Vec<_>>()
    );
    let text: String = all.iter().filter_map(|(_, _, data)| data["text"].as_str()).collect();
    assert_eq!(text, "1\n2\n3\n");
    let done = &all.last().unwrap().2;
    assert_eq!(
        (&done["status"], &done["stdout"]),
        (&json!("ended"), &json!("1\n2\n3\n"))
    );

    let again = events(&server.ask("GET", &path, &[("Last-Event-ID", "4")], b""));
    assert_eq!(again, all[4..], "what was not seen yet, and nothing else");
    let nonsense = server.ask("GET", &path, &[("Last-Event-ID", "x")], b"");
    assert_eq!(nonsense.error(), (400, "invalid_request".to_owned()));
    let shown = server.json("", "GET", &format!("/v1/runs/{id}?wait=5"), None).good(200);
    assert_eq!(&shown, done);
}

#[test]
fn a_flood_is_replayed_within_bounds() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = begin(&server, "yes 0123456789 | head -c 4000000; echo; echo end");
    server
        .json("", "GET", &format!("/v1/runs/{id}?wait=30"), None)
        .good(200);
    let told = server.ask("GET", &format!("/v1/runs/{id}/events"), &[], b"");
    assert!(told.body.len() < 1 << 20, "{}", told.body.len());
    let all = events(&told);
    assert_eq!(all[0].1, "left_out");
    assert_eq!(all[0].2["events"], all[1].0 - 1);
    assert_eq!(all.last().unwrap().1, "done");
}

#[test]
fn a_cancelled_run_is_dead_when_the_answer_comes() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = begin(&server, "exec sleep 7101");
    server.wait_until("the run goes on", || !server.running("7101").is_empty());
    let ended = server.json("", "DELETE", &format!("/v1/runs/{id}"), None).good(200);
    assert_eq!(
        (&ended["status"], &ended["ended_by"]),
        (&json!("ended"), &json!("cancelled"))
    );
    assert!(server.running("7101").is_empty());
    let gone = server.json("", "GET", &format!("/v1/runs/{id}"), None);
    assert_eq!(gone.error(), (404, "run_unknown".to_owned()));
}

#[test]
fn a_client_that_vanishes_takes_its_run_with_it() {
    let (server, _) = HttpServer::start(&[], &[]);
    server
        .json("", "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .good(201);
    let json = [("Content-Type", "application/json")];
    for (path, seconds) in [
        ("/v1/runs?wait=600", "7201"),
        ("/v1/sessions/s1/tools/skill_run", "7202"),
    ] {
        let run = json!({"skill": "python-math", "command": format!("exec sleep {seconds}")});
        let client = server.send("POST", path, &json, run.to_string().as_bytes());
        server.wait_until("the run goes on", || !server.running(seconds).is_empty());
        drop(client);
        server.wait_until("nothing of it is left", || server.running(seconds).is_empty());
    }
    server.wait_until("no workspace is left", || {
        let scratch = std::fs::read_dir(server.state("scratch"));
        scratch.map_or(0, Iterator::count) == 0
    });
    // What goes on without anybody who waits for it is not concerned.
    let id = begin(&server, "sleep 0.5; echo still here");
    let shown = server
        .json("", "GET", &format!("/v1/runs/{id}?wait=20"), None)
        .good(200);
    assert_eq!(shown["stdout"], "still here\n");
    server.json("", "DELETE", "/v1/sessions/s1", None);
}

#[test]
fn a_server_that_ends_lets_short_runs_finish_and_kills_the_others() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, _) = HttpServer::start(&["--grace", "2"], &[]);
        let long = begin(&server, "exec sleep 7301");
        let listener = server.send("GET", &format!("/v1/runs/{long}/events"), &[], b"");
        let run = json!({"skill": "python-math", "command": "sleep 0.7; echo finished"});
        let json = [("Content-Type", "application/json")];
        let waiting = server.send("POST", "/v1/runs?wait=60", &json, run.to_string().as_bytes());
        server.wait_until("both go on", || {
            let listed = server.json("", "GET", "/v1/runs", None).value();
            let runs = listed["runs"].as_array().unwrap();
            runs.len() == 2 && runs.iter().all(|run| run["status"] == "running")
        });
        let begun = Instant::now();
        server.signal(signal);
        assert_eq!(HttpAnswer::read(waiting).good(200)["stdout"], "finished\n");
        let told = HttpAnswer::read(listener);
        assert_eq!(told.status, 200);
        assert!(begun.elapsed() < Duration::from_secs(2), "streams end with the signal");
        assert!(server.ended(Duration::from_secs(20)).success());
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(server.running("7301").is_empty());
    }
}
