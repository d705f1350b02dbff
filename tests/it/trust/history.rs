//! The history: runs of all processes, now and in the past.

use std::net::{TcpListener, TcpStream};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Fixture, HttpResponse, wait_until};

fn list(fixture: &Fixture, filters: &[&str]) -> Vec<Value> {
    let listed = fixture.command(&[&["runs", "list", "--json"], filters].concat()).run();
    assert_eq!(listed.code, Some(0), "{}", listed.describe());
    listed.json()["runs"].as_array().unwrap().clone()
}

#[test]
fn runs_are_listed_shown_and_removed() {
    let fixture = Fixture::new();
    fixture.add_skill("other", &[]);
    let ok = fixture.request(json!({"command": "echo hello"})).run();
    let failed = fixture.request(json!({"skill": "other", "command": "exit 4"})).run();
    let refused = fixture.request(json!({"command": "true", "cwd": "/etc"})).run();
    assert!(refused.is_refused());
    let all = list(&fixture, &[]);
    let statuses: Vec<&str> = all.iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["refused", "ended", "ended"]);
    assert_eq!(all[2]["run_id"], ok["run_id"]);
    assert_eq!(all[1]["exit_code"], 4);
    assert_eq!(list(&fixture, &["--failed"]).len(), 2);
    assert_eq!(list(&fixture, &["--skill", "other"]).len(), 1);
    assert_eq!(list(&fixture, &["--since", "1h"]).len(), 3);
    assert_eq!(list(&fixture, &["--since", "2999-01-01"]).len(), 0);
    assert_eq!(list(&fixture, &["--tenant", "alice"]).len(), 0);
    assert_eq!(list(&fixture, &["--limit", "1"]).len(), 1);

    let id = ok["run_id"].as_str().unwrap();
    let shown = fixture.command(&["runs", "show", id, "--json"]).run();
    assert_eq!(shown["report"]["stdout"], "hello\n");
    let id = failed["run_id"].as_str().unwrap();
    assert_eq!(fixture.command(&["runs", "rm", id]).run().code, Some(0));
    assert_eq!(list(&fixture, &[]).len(), 2);
    let gone = fixture.command(&["runs", "show", id, "--json"]).run();
    assert_eq!(gone.expect_refusal().0, "run_unknown");
}

#[test]
fn a_run_of_another_process_can_be_killed() {
    let fixture = Fixture::new();
    let child = fixture.request(json!({"command": "exec sleep 7319"})).spawn();
    fixture.wait_for("the script runs", || {
        (!fixture.host_pids_with("7319").is_empty()).then_some(())
    });
    let running = list(&fixture, &[]);
    assert_eq!(running[0]["status"], "running");
    let id = running[0]["run_id"].as_str().unwrap();
    let refused = fixture.command(&["runs", "rm", id, "--json"]).run();
    assert_eq!(refused.expect_refusal().0, "busy");
    let killed = fixture.command(&["runs", "kill", id]).run();
    assert_eq!(killed.code, Some(0), "{}", killed.describe());
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ended_by"], "cancelled");
    fixture.wait_for_no_process_with("7319");
    assert_eq!(list(&fixture, &[])[0]["status"], "ended");
    let again = fixture.command(&["runs", "kill", id, "--json"]).run();
    assert!(again.is_refused(), "{}", again.describe());
}

#[test]
fn a_server_lists_the_runs_of_the_server_before() {
    let fixture = Fixture::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let start = || {
        let server = fixture.command(&["serve", "--listen", &address]).spawn();
        wait_until("the server listens", || TcpStream::connect(&address).is_ok());
        server
    };
    let send = |method: &str, path: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        let length = format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        std::io::Write::write_all(&mut stream, format!("{head}{length}{body}").as_bytes()).unwrap();
        HttpResponse::read(stream)
    };
    let stop = |mut server: std::process::Child| {
        let pid = Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(server.wait().unwrap().success());
    };
    let server = start();
    let mut ids: Vec<String> = Vec::new();
    for code in 0..3 {
        let run = json!({"skill": "probe", "command": format!("echo {code}; exit {code}")}).to_string();
        let ended = send("POST", "/v1/runs?wait=60", &run).expect_status(200);
        ids.push(ended["run_id"].as_str().unwrap().to_owned());
    }
    stop(server);
    let server = start();
    let get = |query: &str| send("GET", &format!("/v1/runs{query}"), "").expect_status(200);
    let listed_ids = |listed: &Value| -> Vec<String> {
        let runs = listed["runs"].as_array().unwrap();
        runs.iter()
            .map(|run| run["run_id"].as_str().unwrap().to_owned())
            .collect()
    };
    ids.reverse();
    assert_eq!(listed_ids(&get("")), ids);
    assert_eq!(listed_ids(&get("?failed=true&since=1h")), ids[..2]);
    let page = get("?limit=2");
    assert_eq!(listed_ids(&page), ids[..2]);
    let next = page["next"].as_str().unwrap();
    assert_eq!(listed_ids(&get(&format!("?limit=2&before={next}"))), ids[2..]);
    let shown = send("GET", &format!("/v1/runs/{}", ids[0]), "").expect_status(200);
    assert_eq!(shown["stdout"], "2\n");
    assert_eq!(send("GET", "/v1/runs?since=yesterday", "").error().0, 400);
    stop(server);
}
