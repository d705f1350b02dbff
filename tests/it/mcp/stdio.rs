//! `skillbox mcp` on standard input and output, and the client of the protocol's Python SDK, in both revisions.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::{DEADLINE, MODES, SKILLBOX, World, client, python, shipped};
use crate::lab::{program, reap, run_to_end, start};

#[test]
fn skills_are_described_loaded_and_read() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let told = World::new().play(&python, "tour", mode, &[], &shipped());
        let version = if mode == "legacy" { "2025-11-25" } else { "2026-07-28" };
        assert_eq!(told["version"], version);
        assert!(
            told["instructions"].as_str().unwrap().contains("- csv-report: "),
            "{mode}"
        );
        assert_eq!(told["tools"][0], "skill_list");
        assert_eq!(
            (&told["stable"], &told["without_output_schema"]),
            (&json!(true), &json!([]))
        );
        assert!(told["loaded_text"].as_str().unwrap().contains("# CSV report"));
        assert_eq!(told["loaded"]["skill"], "csv-report");
        assert_eq!(told["docs"]["result"][0], "references/report.md");
        assert_eq!(told["refused"]["is_error"], true);
        assert_eq!(told["refused"]["structured"]["error"]["code"], "unknown_skill");
        assert!(told["prompts"].as_array().unwrap().contains(&json!("csv-report")));
        assert!(told["prompt"].as_str().unwrap().contains("# CSV report"));
        check_extension(&told, mode);
    }
}

/// Every file once, with the size and digest that it has on disk.
fn check_extension(told: &Value, mode: &str) {
    let listed = told["skills"]["skills"].as_array().unwrap();
    assert_eq!(listed.len(), 7);
    let ours = listed
        .iter()
        .find(|skill| skill["frontmatter"]["name"] == "csv-report")
        .unwrap();
    assert_eq!(ours, &told["one"]["skill"], "one answer by list and by name");
    assert_eq!(
        ours["frontmatter"]["metadata"],
        json!({"version": "1.0.0", "category": "data"})
    );
    let on_disk = fs::read(shipped().join("csv-report/SKILL.md")).unwrap();
    assert_eq!(told["skill_md"].as_str().unwrap().as_bytes(), on_disk);
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
    let script = fs::metadata(shipped().join("csv-report/scripts/report.py")).unwrap();
    assert_eq!(size_of("scripts/report.py"), script.len());
    assert_eq!(told["skills"]["resultType"].is_string(), mode != "legacy");
    let children = told["children"]["resources"].as_array().unwrap();
    let scripts = children.iter().find(|child| child["name"] == "scripts").unwrap();
    assert_eq!(scripts["mimeType"], "inode/directory");
    let uris: Vec<&str> = told["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    assert!(
        uris.contains(&"skill://csv-report/SKILL.md") && uris.contains(&"skill://index.json"),
        "{uris:?}"
    );
    assert_eq!(told["index"]["skills"].as_array().unwrap().len(), 7);
}

#[test]
fn a_report_on_a_file_comes_back_with_its_chart() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let world = World::new();
        let csv = world.path("host/sales.csv");
        fs::write(
            &csv,
            "date,region,revenue\n2024-01-01,north,10\n2024-02-01,south,20\n2024-03-01,north,15\n",
        )
        .unwrap();
        // A file of the client, which travels with the call, and one of the server's host.
        let ours = csv.to_str().unwrap().to_owned();
        let csv = if mode == "auto" { ours } else { format!("host://{ours}") };
        let told = world.play(&python, "report", mode, &[&csv], &shipped());
        let result = &told["result"];
        assert_eq!(
            (&result["exit_code"], &result["ended_by"]),
            (&json!(0), &json!("exit")),
            "{result}"
        );
        assert_eq!(
            told["links"]["out/chart.svg"], "artifact://out/chart.svg@0",
            "{}",
            told["links"]
        );
        let chart = told["chart"].as_str().unwrap();
        assert!(
            chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"),
            "{chart}"
        );
        assert_eq!(told["chart_type"], "image/svg+xml");
        assert!(
            told["listed"]
                .as_array()
                .unwrap()
                .contains(&told["links"]["out/chart.svg"])
        );
        let news = |key: &str| {
            told[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(news("told").concat().contains("\"rows\": 3"), "{:?}", news("told"));
        let slow = news("slow");
        let first = slow.iter().position(|text| text.contains("one")).unwrap();
        assert!(
            !slow[first].contains("two"),
            "what a script says comes while it runs: {slow:?}"
        );
        assert!(slow[first..].concat().contains("two"));
        assert_eq!(told["later"], "<svg", "the workspace is the session's");
        assert_eq!(told["raw"], "//4=", "two bytes that are no text");
        assert_eq!(told["named"], json!(["a b:ü%.txt", "odd"]), "whatever a file is called");
    }
}

#[test]
fn a_cancelled_run_ends_and_the_session_goes_on() {
    let Some(python) = python() else { return };
    for mode in MODES {
        let told = World::new().play(&python, "cancel", mode, &[], &shipped());
        assert_eq!(told["after"], "after\n");
        assert!(told["waited"].as_f64().unwrap() < 5.0, "{told}");
    }
}

#[test]
fn a_skill_that_comes_later_is_told() {
    let Some(python) = python() else { return };
    let world = World::new();
    let skills = world.path("skills");
    fs::create_dir(&skills).unwrap();
    let told = world.play(&python, "changes", "auto", &[skills.to_str().unwrap()], &skills);
    assert_eq!(told["prompts"], json!([["newcomer", "[file]"]]));
    assert_eq!(told["heard"], json!(["ToolsListChanged", "ResourcesListChanged"]));
    fs::remove_dir_all(skills.join("newcomer")).unwrap();
    let told = world.play(&python, "changes", "legacy", &[skills.to_str().unwrap()], &skills);
    assert_eq!(told["prompts"], json!([["newcomer", "[file]"]]));
    let heard = told["heard"].as_array().unwrap();
    assert!(heard.contains(&json!("ResourceListChangedNotification")), "{heard:?}");
}

#[test]
fn s28_a_killed_client_leaves_no_process_and_no_workspace() {
    let Some(python) = python() else { return };
    let world = World::new();
    let mut command = client(&python);
    command
        .args(world.words("forever", "auto", &["$WORK_DIR/mark"], &shipped()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut client = start(&mut command);
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"running": true}"#);
    let sessions: Vec<_> = fs::read_dir(world.path("state/sessions")).unwrap().flatten().collect();
    let mark = sessions[0].path().join("workspace/work/mark");
    let patience = Instant::now() + Duration::from_secs(5);
    while !mark.exists() {
        assert!(Instant::now() < patience, "the run goes on in the session's workspace");
        std::thread::sleep(Duration::from_millis(10));
    }
    reap(&mut client);
    world.assert_clean();
}

#[test]
fn s28_the_next_server_removes_what_a_killed_one_left() {
    let world = World::new();
    let mut command = program(SKILLBOX);
    command
        .args(["mcp", "--skills"])
        .arg(shipped())
        .arg("--state-dir")
        .arg(world.path("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let mut server = start(&mut command);
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("\"serverInfo\""), "{line}");
    reap(&mut server);
    assert_eq!(fs::read_dir(world.path("state/sessions")).unwrap().count(), 1);

    let ended = run_to_end(&mut command, format!("{hello}\n").as_bytes(), DEADLINE);
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "skillbox");
    world.assert_clean();
}

/// What the server writes on its standard output for these requests, line by line.
#[track_caller]
fn lines_for(world: &World, skills: &Path, requests: &[Value]) -> Vec<Value> {
    let mut input = String::new();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [hello, ready].iter().chain(requests) {
        input.push_str(&format!("{message}\n"));
    }
    let mut command = program(SKILLBOX);
    command.args(["mcp", "--skills"]).arg(skills);
    command.arg("--state-dir").arg(world.path("state"));
    let ended = run_to_end(&mut command, input.as_bytes(), DEADLINE);
    let told = String::from_utf8(ended.stdout).unwrap();
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    told.lines().map(parse).collect()
}

#[test]
fn whatever_a_script_prints_only_the_protocol_is_on_standard_output() {
    let world = World::new();
    let noise = r#"echo '{"jsonrpc": "2.0", "id": 7, "result": {}}'; echo plain; echo loud >&2; printf '\377\n';
        for place in /dev/tty /dev/console /proc/1/fd/1 /proc/self/fd/1; do echo "$place" > $place; done; true"#;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "skill_run", "arguments": {"skill": "python-math", "command": noise}, "_meta": {"progressToken": "p"},
    }});
    let lines = lines_for(&world, &shipped(), &[call]);
    let mut answers = 0;
    for line in &lines {
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        let is_news = line["method"] == "notifications/progress";
        answers += usize::from(!is_news);
        assert!(is_news || line["id"] == 0 || line["id"] == 1, "{line}");
    }
    assert_eq!(answers, 2);
    let said = &lines.last().unwrap()["result"]["structuredContent"]["stdout"];
    assert!(said.as_str().unwrap().contains("plain\n"), "{said}");
    world.assert_clean();
}

#[test]
fn a_skill_that_is_too_much_for_hosts_is_announced_without_its_files() {
    let world = World::new();
    let skills = world.path("skills");
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
    let answers = lines_for(&world, &skills, &[list, read]);
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
    assert_eq!(answer(2)["contents"][0]["text"], "x", "what is not listed can be read");
}

#[test]
fn the_results_of_every_tool_fit_their_schemas_in_every_dialect() {
    let Some(python) = python() else { return };
    for (dialect, tools) in [
        ("skillbox", 10),
        ("trpc", 4),
        ("deepagents", 1),
        ("saa", 3),
        ("agentskills", 0),
    ] {
        let world = World::new();
        let mut command = client(&python);
        command.args(world.words("every_tool", "auto", &[], &shipped()));
        command.args(["--dialect", dialect]);
        let ended = run_to_end(&mut command, b"", DEADLINE);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{dialect}: {told}");
        let called: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(called["called"].as_array().unwrap().len(), tools, "{dialect}: {called}");
        assert_eq!(
            called["bare"],
            json!([]),
            "{dialect}: results without structured content"
        );
    }
}
