//! `skillbox mcp` on standard input and output, used by the Python SDK of the protocol in both revisions.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{MODES, McpFixture, SCENARIO_DEADLINE, SKILLBOX, client, python, shipped_skills};
use crate::harness::{
    assert_within, kill_and_reap, pids_with_argument, program, run_to_completion, spawn_tracked, wait_until,
};

#[test]
fn skills_are_described_loaded_and_read() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let result = McpFixture::new().run_scenario(&python, "tour", mode, &[], &shipped_skills());
        let version = if mode == "legacy" { "2025-11-25" } else { "2026-07-28" };
        assert_eq!(result["version"], version);
        assert!(
            result["instructions"].as_str().unwrap().contains("- csv-report: "),
            "{mode}"
        );
        assert_eq!(result["tools"][0], "skill_list");
        assert_eq!(
            (&result["stable"], &result["without_output_schema"]),
            (&json!(true), &json!([]))
        );
        assert!(result["loaded_text"].as_str().unwrap().contains("# CSV report"));
        assert_eq!(result["loaded"]["skill"], "csv-report");
        assert_eq!(result["docs"]["result"][0], "references/report.md");
        assert_eq!(result["refused"]["is_error"], true);
        assert_eq!(result["refused"]["structured"]["error"]["code"], "unknown_skill");
        assert!(result["prompts"].as_array().unwrap().contains(&json!("csv-report")));
        assert!(result["prompt"].as_str().unwrap().contains("# CSV report"));
        check_extension(&result, mode);
    }
}

/// Checks that every file is listed once, with the size and digest that it has on disk.
fn check_extension(result: &Value, mode: &str) {
    let listed = result["skills"]["skills"].as_array().unwrap();
    assert_eq!(listed.len(), 7);
    let ours = listed
        .iter()
        .find(|skill| skill["frontmatter"]["name"] == "csv-report")
        .unwrap();
    assert_eq!(ours, &result["one"]["skill"], "the list and the single request agree");
    assert_eq!(
        ours["frontmatter"]["metadata"],
        json!({"version": "1.0.0", "category": "data"})
    );
    let on_disk = fs::read(shipped_skills().join("csv-report/SKILL.md")).unwrap();
    assert_eq!(result["skill_md"].as_str().unwrap().as_bytes(), on_disk);
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
    let script = fs::metadata(shipped_skills().join("csv-report/scripts/report.py")).unwrap();
    assert_eq!(size_of("scripts/report.py"), script.len());
    assert_eq!(result["skills"]["resultType"].is_string(), mode != "legacy");
    let children = result["children"]["resources"].as_array().unwrap();
    let scripts = children.iter().find(|child| child["name"] == "scripts").unwrap();
    assert_eq!(scripts["mimeType"], "inode/directory");
    let uris: Vec<&str> = result["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    assert!(
        uris.contains(&"skill://csv-report/SKILL.md") && uris.contains(&"skill://index.json"),
        "{uris:?}"
    );
    assert_eq!(result["index"]["skills"].as_array().unwrap().len(), 7);
}

#[test]
fn a_report_run_returns_its_chart() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let fixture = McpFixture::new();
        let csv = fixture.path("host/sales.csv");
        fs::write(
            &csv,
            "date,region,revenue\n2024-01-01,north,10\n2024-02-01,south,20\n2024-03-01,north,15\n",
        )
        .unwrap();
        // A file of the client, which is part of the call, or one of the server's host.
        let ours = csv.to_str().unwrap().to_owned();
        let csv = if mode == "auto" { ours } else { format!("host://{ours}") };
        let result = fixture.run_scenario(&python, "report", mode, &[&csv], &shipped_skills());
        let report = &result["report"];
        assert_eq!(
            (&report["exit_code"], &report["ended_by"]),
            (&json!(0), &json!("exit")),
            "{report}"
        );
        assert_eq!(
            result["links"]["out/chart.svg"], "artifact://out/chart.svg@0",
            "{}",
            result["links"]
        );
        let chart = result["chart"].as_str().unwrap();
        assert!(
            chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"),
            "{chart}"
        );
        assert_eq!(result["chart_type"], "image/svg+xml");
        assert!(
            result["listed"]
                .as_array()
                .unwrap()
                .contains(&result["links"]["out/chart.svg"])
        );
        let messages = |key: &str| {
            result[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(
            messages("progress").concat().contains("\"rows\": 3"),
            "{:?}",
            messages("progress")
        );
        let slow = messages("slow_progress");
        let first = slow.iter().position(|text| text.contains("one")).unwrap();
        assert!(!slow[first].contains("two"), "output is sent during the run: {slow:?}");
        assert!(slow[first..].concat().contains("two"));
        assert_eq!(result["later"], "<svg", "a later run has the same workspace");
        assert_eq!(result["raw"], "//4=", "two bytes that are not UTF-8");
        assert_eq!(result["named"], json!(["a b:ü%.txt", "odd"]), "an unusual file name");
    }
}

#[test]
fn a_cancelled_run_ends_and_the_session_stays_usable() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let result = McpFixture::new().run_scenario(&python, "cancel", mode, &[], &shipped_skills());
        assert_eq!(result["after"], "after\n");
        let waited = Duration::from_secs_f64(result["waited"].as_f64().unwrap());
        assert_within(waited, Duration::from_secs(5), "the run after a cancelled one");
    }
}

#[test]
fn an_added_skill_is_announced() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    let skills = fixture.path("skills");
    fs::create_dir(&skills).unwrap();
    let result = fixture.run_scenario(&python, "changes", "auto", &[skills.to_str().unwrap()], &skills);
    assert_eq!(result["prompts"], json!([["added", "[file]"]]));
    assert_eq!(
        result["notifications"],
        json!(["ToolsListChanged", "ResourcesListChanged"])
    );
    fs::remove_dir_all(skills.join("added")).unwrap();
    let result = fixture.run_scenario(&python, "changes", "legacy", &[skills.to_str().unwrap()], &skills);
    assert_eq!(result["prompts"], json!([["added", "[file]"]]));
    let notifications = result["notifications"].as_array().unwrap();
    assert!(
        notifications.contains(&json!("ResourceListChangedNotification")),
        "{notifications:?}"
    );
}

#[test]
fn s28_a_killed_client_leaves_no_process_and_no_workspace() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    // The length of the sleep names the process of this test.
    let seconds = format!("600.0{}", std::process::id());
    let mut command = client(&python);
    command
        .args(fixture.scenario_args("forever", "auto", &["$WORK_DIR/mark", &seconds], &shipped_skills()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut client = spawn_tracked(&mut command);
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"running": true}"#);
    wait_until("the run is running", || !pids_with_argument(&seconds).is_empty());
    let sessions = fs::read_dir(fixture.path("state/sessions")).unwrap().flatten();
    let is_session = |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    assert_eq!(sessions.filter(is_session).count(), 1);
    kill_and_reap(&mut client);
    wait_until("the run is killed", || pids_with_argument(&seconds).is_empty());
    fixture.assert_clean();
}

#[test]
fn s28_the_next_server_removes_the_sessions_of_a_killed_one() {
    let fixture = McpFixture::new();
    let mut command = program(SKILLBOX);
    command
        .args(["mcp", "--skills"])
        .arg(shipped_skills())
        .arg("--state-dir")
        .arg(fixture.path("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let mut server = spawn_tracked(&mut command);
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{initialize}").unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("\"serverInfo\""), "{line}");
    kill_and_reap(&mut server);
    assert_eq!(fs::read_dir(fixture.path("state/sessions")).unwrap().count(), 1);

    let ended = run_to_completion(&mut command, format!("{initialize}\n").as_bytes(), SCENARIO_DEADLINE);
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "skillbox");
    fixture.assert_clean();
}

/// Sends requests and returns the messages that the server writes to standard output.
#[track_caller]
fn messages_for(fixture: &McpFixture, skills: &Path, requests: &[Value]) -> Vec<Value> {
    let mut input = String::new();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [initialize, initialized].iter().chain(requests) {
        input.push_str(&format!("{message}\n"));
    }
    let mut command = program(SKILLBOX);
    command.args(["mcp", "--skills"]).arg(skills);
    command.arg("--state-dir").arg(fixture.path("state"));
    let ended = run_to_completion(&mut command, input.as_bytes(), SCENARIO_DEADLINE);
    let stdout = String::from_utf8(ended.stdout).unwrap();
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout.lines().map(parse).collect()
}

#[test]
fn script_output_never_reaches_the_protocol_stream() {
    let fixture = McpFixture::new();
    let noise = r#"echo '{"jsonrpc": "2.0", "id": 7, "result": {}}'; echo plain; echo loud >&2; printf '\377\n';
        for place in /dev/tty /dev/console /proc/1/fd/1 /proc/self/fd/1; do echo "$place" > $place; done; true"#;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "skill_run", "arguments": {"skill": "python-math", "command": noise}, "_meta": {"progressToken": "p"},
    }});
    let lines = messages_for(&fixture, &shipped_skills(), &[call]);
    let mut responses = 0;
    for line in &lines {
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        let is_progress = line["method"] == "notifications/progress";
        responses += usize::from(!is_progress);
        assert!(is_progress || line["id"] == 0 || line["id"] == 1, "{line}");
    }
    assert_eq!(responses, 2);
    let stdout = &lines.last().unwrap()["result"]["structuredContent"]["stdout"];
    assert!(stdout.as_str().unwrap().contains("plain\n"), "{stdout}");
    fixture.assert_clean();
}

#[test]
fn a_skill_that_did_not_load_is_refused_with_the_reason() {
    let fixture = McpFixture::new();
    let skills = fixture.path("unloaded");
    fs::create_dir_all(skills.join("broken")).unwrap();
    fs::write(
        skills.join("broken/SKILL.md"),
        "---\nname: broken\ndescription: [never closed\n---\n",
    )
    .unwrap();
    let call = |id: u32, tool: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let load = call(1, "skill_load", json!({"skill": "broken"}));
    let run = call(2, "skill_run", json!({"skill": "broken", "command": "true"}));
    let messages = messages_for(&fixture, &skills, &[load, run]);
    for id in [1, 2] {
        let response = messages.iter().find(|message| message["id"] == id).unwrap();
        assert!(response.to_string().contains("broken/SKILL.md:3:14"), "{response}");
    }
    fixture.assert_clean();
}

#[test]
fn a_skill_over_the_resource_limits_is_listed_without_its_files() {
    let fixture = McpFixture::new();
    let skills = fixture.path("skills");
    for (name, files, bytes) in [("fits", 511, 1), ("many", 512, 1), ("large", 1, 16 << 20)] {
        let dir = skills.join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(
            dir.join("SKILL.md"),
            format!("---\nname: {name}\ndescription: A test.\n---\n"),
        )
        .unwrap();
        for file in 0..files {
            fs::write(dir.join(format!("{file}.bin")), vec![b'x'; bytes]).unwrap();
        }
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {}});
    let uri = json!({"uri": "skill://many/7.bin"});
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": uri});
    let answers = messages_for(&fixture, &skills, &[list, read]);
    let answer = |id: u64| &answers.iter().find(|answer| answer["id"] == id).unwrap()["result"];
    let listed = answer(1)["skills"].as_array().unwrap();
    let resources = |name: &str| {
        let listed = listed.iter().find(|skill| skill["frontmatter"]["name"] == name);
        &listed.unwrap()["resources"]
    };
    assert_eq!(resources("fits").as_array().unwrap().len(), 512, "with its SKILL.md");
    assert_eq!(
        (resources("many"), resources("large")),
        (&json!("dynamic"), &json!("dynamic"))
    );
    assert_eq!(
        answer(2)["contents"][0]["text"],
        "x",
        "a file that is not listed can be read"
    );
}

#[test]
fn the_results_of_every_tool_match_their_schemas_in_every_dialect() {
    let Some(python) = python() else { return };
    for (dialect, tools) in [
        ("skillbox", 10),
        ("trpc", 4),
        ("deepagents", 1),
        ("saa", 3),
        ("agentskills", 0),
    ] {
        let fixture = McpFixture::new();
        let mut command = client(&python);
        command.args(fixture.scenario_args("every_tool", "auto", &[], &shipped_skills()));
        command.args(["--dialect", dialect]);
        let ended = run_to_completion(&mut command, b"", SCENARIO_DEADLINE);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{dialect}: {stderr}");
        let called: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(called["called"].as_array().unwrap().len(), tools, "{dialect}: {called}");
        assert_eq!(
            called["without_structured_content"],
            json!([]),
            "{dialect}: results without structured content"
        );
    }
}
