//! Runs over HTTP: streamed, replayed, cancelled, and ended by a disconnected caller or a shutdown.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{HttpResponse, HttpServer, assert_within, pids_with_argument, wait_until};

fn start_run(server: &HttpServer, command: &str) -> String {
    let run = json!({"skill": "python-math", "command": command});
    let begun = server
        .request_json("", "POST", "/v1/runs", Some(&run))
        .expect_status(202);
    begun["run_id"].as_str().unwrap().to_owned()
}

/// The events of a stream that has ended: id, name, data.
fn events(answer: &HttpResponse) -> Vec<(u64, String, Value)> {
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
fn run_events_are_streamed_live_and_replayed() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = start_run(&server, "for i in 1 2; do echo $i; sleep 0.2; done; sleep 3; echo 3");
    let path = format!("/v1/runs/{id}/events");
    let mut stream = BufReader::new(server.send("GET", &path, &[], b""));
    let mut seen = String::new();
    while !seen.contains("\"text\":\"1\\n\"") {
        assert_ne!(stream.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    assert!(
        !seen.contains("\"text\":\"3\\n\""),
        "events are streamed during the run: {seen}"
    );

    let all = events(&server.request("GET", &path, &[], b""));
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

    let again = events(&server.request("GET", &path, &[("Last-Event-ID", "4")], b""));
    assert_eq!(again, all[4..], "exactly the events after the given one");
    let invalid = server.request("GET", &path, &[("Last-Event-ID", "x")], b"");
    assert_eq!(invalid.error(), (400, "invalid_request".to_owned()));
    let shown = server
        .request_json("", "GET", &format!("/v1/runs/{id}?wait=60"), None)
        .expect_status(200);
    assert_eq!(&shown, done);
}

#[test]
fn the_replay_of_a_flood_is_bounded() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = start_run(&server, "yes 0123456789 | head -c 4000000; echo; echo end");
    server
        .request_json("", "GET", &format!("/v1/runs/{id}?wait=100"), None)
        .expect_status(200);
    let replay = server.request("GET", &format!("/v1/runs/{id}/events"), &[], b"");
    assert!(replay.body.len() < 1 << 20, "{}", replay.body.len());
    let all = events(&replay);
    assert_eq!(all[0].1, "left_out");
    assert_eq!(all[0].2["events"], all[1].0 - 1);
    assert_eq!(all.last().unwrap().1, "done");
}

#[test]
fn cancelling_a_run_returns_after_its_processes_ended() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = start_run(&server, "exec sleep 7101");
    wait_until("the run has started", || !pids_with_argument("7101").is_empty());
    let cancelled = server
        .request_json("", "DELETE", &format!("/v1/runs/{id}"), None)
        .expect_status(200);
    assert_eq!(
        (&cancelled["status"], &cancelled["ended_by"]),
        (&json!("ended"), &json!("cancelled"))
    );
    assert!(pids_with_argument("7101").is_empty());
    let removed = server.request_json("", "GET", &format!("/v1/runs/{id}"), None);
    assert_eq!(removed.error(), (410, "run_gone".to_owned()));
}

#[test]
fn a_waiting_client_that_disconnects_cancels_its_run() {
    let (server, _) = HttpServer::start(&[], &[]);
    server
        .request_json("", "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .expect_status(201);
    let json = [("Content-Type", "application/json")];
    for (path, seconds) in [
        ("/v1/runs?wait=600", "7201"),
        ("/v1/sessions/s1/tools/skill_run", "7202"),
    ] {
        let run = json!({"skill": "python-math", "command": format!("exec sleep {seconds}")});
        let client = server.send("POST", path, &json, run.to_string().as_bytes());
        wait_until("the run has started", || !pids_with_argument(seconds).is_empty());
        drop(client);
        wait_until("the processes of the run have ended", || {
            pids_with_argument(seconds).is_empty()
        });
    }
    wait_until("no workspace is left", || {
        let scratch = std::fs::read_dir(server.state_path("scratch"));
        scratch.map_or(0, Iterator::count) == 0
    });
    // A run that no client waits for is not affected.
    let id = start_run(&server, "sleep 0.5; echo still here");
    let shown = server
        .request_json("", "GET", &format!("/v1/runs/{id}?wait=100"), None)
        .expect_status(200);
    assert_eq!(shown["stdout"], "still here\n");
    server.request_json("", "DELETE", "/v1/sessions/s1", None);
}

#[test]
fn shutdown_waits_for_short_runs_and_kills_the_others() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, _) = HttpServer::start(&["--grace", "6"], &[]);
        let long = start_run(&server, "exec sleep 7301");
        let subscriber = server.send("GET", &format!("/v1/runs/{long}/events"), &[], b"");
        let run = json!({"skill": "python-math", "command": "sleep 2; echo finished"});
        let json = [("Content-Type", "application/json")];
        let waiting = server.send("POST", "/v1/runs?wait=60", &json, run.to_string().as_bytes());
        wait_until("both runs are running", || {
            let listed = server.request_json("", "GET", "/v1/runs", None).json();
            let runs = listed["runs"].as_array().unwrap();
            runs.len() == 2 && runs.iter().all(|run| run["status"] == "running")
        });
        let begun = Instant::now();
        server.signal(signal);
        let events = HttpResponse::read(subscriber);
        assert_eq!(events.status, 200);
        assert_within(
            begun.elapsed(),
            Duration::from_secs(2),
            "event streams end with the signal",
        );
        assert_eq!(HttpResponse::read(waiting).expect_status(200)["stdout"], "finished\n");
        assert!(server.wait_for_exit().success());
        assert_within(begun.elapsed(), Duration::from_secs(20), "the shutdown");
        assert!(pids_with_argument("7301").is_empty());
    }
}

#[test]
fn files_of_runs_without_session_are_served_for_a_while() {
    let (server, _) = HttpServer::start(&["--results-ttl", "5"], &[]);
    let run = json!({
        "skill": "python-math", "command": "printf 'a\\0b' > $OUTPUT_DIR/raw.bin; mkdir out/d; echo text > 'out/d/a b.txt'",
        "output_files": ["out/**"],
    });
    let ended = server
        .request_json("", "POST", "/v1/runs?wait=60", Some(&run))
        .expect_status(200);
    let id = ended["run_id"].as_str().unwrap();
    let files = ended["output_files"].as_array().unwrap();
    assert_eq!(files[0]["name"], "out/d/a b.txt");
    let address = files[0]["ref"].as_str().unwrap();
    assert_eq!(address, format!("/v1/runs/{id}/files/out/d/a%20b.txt"));
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let expires = u128::from(files[0]["expires_unix_ms"].as_u64().unwrap());
    assert!(expires <= now + 5_000 && expires + 5_000 >= now, "{expires} {now}");
    assert_eq!(server.request("GET", address, &[], b"").text(), "text\n");
    let raw = format!("/v1/runs/{id}/files/out/raw.bin");
    let part = server.request("GET", &raw, &[("Range", "bytes=1-2")], b"");
    assert_eq!(part.text(), "\0b");
    let (status, code) = server
        .request("GET", &format!("/v1/runs/{id}/files/out/none"), &[], b"")
        .error();
    assert_eq!((status, code.as_str()), (404, "not_found"));
    wait_until("the files have expired", || {
        let answer = server.request("GET", &raw, &[], b"");
        answer.header("content-type") == Some("application/json") && answer.error() == (410, "run_gone".to_owned())
    });
}

#[test]
fn a_deleted_run_is_gone_and_an_unknown_one_is_unknown() {
    let (server, _) = HttpServer::start(&[], &[]);
    let id = start_run(&server, "true");
    let path = format!("/v1/runs/{id}");
    server.request("DELETE", &path, &[], b"").expect_status(200);
    for path in [path.clone(), format!("{path}/events"), format!("{path}/files/out/x")] {
        assert_eq!(
            server.request("GET", &path, &[], b"").error(),
            (410, "run_gone".to_owned()),
            "{path}"
        );
    }
    let unknown = server.request("GET", "/v1/runs/0192aaaa", &[], b"").error();
    assert_eq!(unknown, (404, "run_unknown".to_owned()));
}

#[test]
fn a_repeated_request_with_a_key_starts_one_run() {
    let (server, _) = HttpServer::start(&[], &[]);
    let post = |key: &str, command: &str| {
        let body = json!({"skill": "python-math", "command": command}).to_string();
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        server.request("POST", "/v1/runs?wait=60", &headers, body.as_bytes())
    };
    let first = post("k1", "date +%N").expect_status(200);
    assert_eq!(post("k1", "date +%N").expect_status(200), first, "the same run");
    assert_ne!(post("k2", "date +%N").expect_status(200)["run_id"], first["run_id"]);
    assert_eq!(post("k1", "true").error().0, 422, "another request");
    assert_eq!(post("", "true").error().0, 400);
}

#[test]
fn an_unknown_field_is_answered_with_all_fields() {
    let (server, _) = HttpServer::start(&[], &[]);
    let run = json!({"skill": "python-math", "comand": "true"});
    let refused = server
        .request_json("", "POST", "/v1/runs", Some(&run))
        .expect_status(400);
    let message = refused["error"]["message"].as_str().unwrap();
    for field in ["`session`", "`command`", "`artifact_prefix`"] {
        assert!(message.contains(field), "{field}: {message}");
    }
}
