//! Skills in the style of public collections: nested ones, odd YAML, and skills that do not load, with the reason.

use std::fs;

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::harness::{Fixture, HttpServer, program, run_to_completion};
use crate::workspace::root;

const DEADLINE: std::time::Duration = std::time::Duration::from_secs(120);

/// A skill without frontmatter, one without a description, one with broken YAML, and a good one.
fn cli_with_unloaded_skills() -> Cli {
    let cli = Cli::new();
    cli.add_skill("skills/good", "Loads.")
        .write_file("skills/plain/SKILL.md", "# Plain\n\nReads things\nand prints them.\n")
        .write_file("skills/bare/SKILL.md", "---\nname: bare\n---\n\nThe body.\n")
        .write_file(
            "skills/broken/SKILL.md",
            "---\nname: broken\ndescription: [never closed\n---\n",
        );
    cli
}

#[track_caller]
fn assert_contains(value: &Value, parts: &[&str]) {
    let text = value.as_str().unwrap_or_default();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {value}");
    }
}

#[test]
fn info_and_run_say_why_a_skill_did_not_load() {
    let cli = cli_with_unloaded_skills();
    insta::assert_snapshot!(cli.run("info broken --skills skills").expect_code(1).transcript(), @"
    exit code 1
    --- stdout
    --- stderr
    error: unknown skill `broken`: it exists but did not load:
           [TEMP]/work/skills/broken/SKILL.md:3:14: the frontmatter is not
           valid YAML: unclosed bracket '['
    hint:  close the bracket, or put the value in quotes if it is text
    ");
    for (name, parts) in [
        ("plain", ["plain/SKILL.md:1:1", "no frontmatter"]),
        ("bare", ["bare/SKILL.md:2:1", "no description"]),
        ("broken", ["broken/SKILL.md:3:14", "unclosed bracket"]),
    ] {
        let info = cli
            .run(&format!("info {name} --skills skills --json"))
            .expect_code(1)
            .json();
        let run = cli
            .run_args(&["run", name, "--skills", "skills", "--json", "--", "true"])
            .expect_code(125)
            .json();
        for error in [&info["error"], &run["error"]] {
            assert_eq!(error["code"], "unknown_skill", "{error}");
            assert_contains(&error["message"], &parts);
            assert!(error["hint"].is_string(), "{error}");
        }
        let with_skill = [
            "run",
            "good",
            "--with-skill",
            name,
            "--skills",
            "skills",
            "--json",
            "--",
            "true",
        ];
        let error = cli.run_args(&with_skill).expect_code(125).json()["error"].clone();
        assert_contains(&error["message"], &parts);
        assert_eq!(error["field"], "with_skills[0]");
    }
    // The control: a name that does not exist gets suggestions.
    let unknown = cli.run("info brokn --skills skills --json").expect_code(1).json();
    assert_contains(&unknown["error"]["hint"], &["good"]);
}

#[test]
fn tool_calls_say_why_a_skill_did_not_load() {
    let cli = cli_with_unloaded_skills();
    let call = |tool: &str, arguments: Value, dialect: &str| {
        let arguments = arguments.to_string();
        let line = ["--skills", "skills", "call", tool, &arguments, "--dialect", dialect];
        cli.run_args(&line).expect_code(1).json()["error"].clone()
    };
    let reason = ["broken/SKILL.md:3:14", "unclosed bracket"];
    for dialect in ["skillbox", "trpc"] {
        for (tool, arguments) in [
            ("skill_load", json!({"skill": "broken"})),
            ("skill_list_docs", json!({"skill": "broken"})),
        ] {
            let error = call(tool, arguments, dialect);
            assert_eq!(error["code"], "unknown_skill");
            assert_contains(&error["message"], &reason);
            assert_contains(&error["message"], &["unknown skill"]);
        }
    }
    let run = call("skill_run", json!({"skill": "broken", "command": "true"}), "skillbox");
    assert_contains(&run["message"], &reason);
    let with = json!({"skill": "good", "command": "true", "with_skills": ["broken"]});
    assert_contains(&call("skill_run", with, "skillbox")["message"], &reason);
    // These messages are fixed by the dialects, so the hint has the reason.
    let error = call("load_skill", json!({"skill_name": "broken"}), "deepagents");
    assert_eq!(
        error["message"],
        "Error: Skill 'broken' not found. Available skills: good"
    );
    assert_contains(&error["hint"], &reason);
    let error = call("read_skill", json!({"skill_name": "broken"}), "saa");
    assert_contains(&error["message"], &["Error: Skill not found: broken"]);
    assert_contains(&error["hint"], &reason);
}

#[test]
fn the_http_api_says_why_a_skill_did_not_load() {
    let cli = cli_with_unloaded_skills();
    let skills = cli.work_dir().join("skills");
    let (server, _) = HttpServer::start(&["--skills", skills.to_str().unwrap()], &[]);
    let info = server.request_json("", "GET", "/v1/skills/broken", None);
    assert_eq!(info.error(), (404, "unknown_skill".to_owned()));
    let request = json!({"skill": "broken", "command": "true"});
    let run = server.request_json("", "POST", "/v1/runs?wait=60", Some(&request));
    server.request_json("", "POST", "/v1/sessions", Some(&json!({"id": "s1"})));
    let arguments = json!({"skill": "broken"});
    let call = server.request_json("", "POST", "/v1/sessions/s1/tools/skill_load", Some(&arguments));
    for response in [info, run, call] {
        let text = response.text();
        assert!(text.contains("broken/SKILL.md:3:14"), "{text}");
    }
}

#[test]
fn list_counts_what_the_metadata_fallback_would_load() {
    let mut cli = cli_with_unloaded_skills();
    let list = cli.run("list --skills skills --json").expect_code(0).json();
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
    assert_eq!(list["loadable_with_metadata_fallback"], 2);
    let text = cli.run("list --skills skills").expect_code(0).stdout;
    assert!(
        text.contains("2 more skills would load with --metadata-fallback"),
        "{text}"
    );
    let with_flag = cli
        .run("list --skills skills --json --metadata-fallback")
        .expect_code(0)
        .json();
    let names: Vec<_> = with_flag["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["bare", "good", "plain"]);
    assert_eq!(with_flag["skills"][2]["description"], "Reads things and prints them.");
    assert_eq!(with_flag["loadable_with_metadata_fallback"], 0);
    // The same as a variable; such a skill is used like any other.
    cli.set_variable("SKILLBOX_METADATA_FALLBACK", "true");
    let loaded = cli.run_args(&["--skills", "skills", "call", "skill_load", r#"{"skill": "plain"}"#]);
    assert_contains(&loaded.expect_code(0).json()["instructions"], &["Reads things"]);
    let run = cli
        .run_args(&["--skills", "skills", "run", "plain", "--", "cat SKILL.md"])
        .expect_code(0);
    assert!(run.stdout.contains("# Plain"), "{}", run.stdout);
}

#[test]
fn list_summarises_many_findings_on_a_terminal_only() {
    let fixture = Fixture::new();
    for index in 0..5 {
        fs::create_dir_all(fixture.skill_path(&format!("plain{index}"), "")).unwrap();
        fs::write(fixture.skill_path(&format!("plain{index}"), "SKILL.md"), "# Text\n").unwrap();
    }
    fs::create_dir_all(fixture.skill_path("broken", "")).unwrap();
    fs::write(fixture.skill_path("broken", "SKILL.md"), "---\nname: [\n---\n").unwrap();
    let in_terminal = |words: &[&str]| {
        let mut command = program("python3");
        command
            .arg(fixture.path("launchers/in_terminal.py"))
            .arg(env!("CARGO_BIN_EXE_skillbox"))
            .args(["--skills", &fixture.path_str("skills"), "list"])
            .args(words)
            .env("HOME", fixture.path("home"));
        let output = run_to_completion(&mut command, b"", DEADLINE);
        let terminal: Value = serde_json::from_slice(&output.stdout).unwrap();
        terminal["output"].as_str().unwrap().to_owned()
    };
    let text = in_terminal(&[]);
    assert!(text.contains("6 diagnostics in all, by code"), "{text}");
    assert!(text.contains("use -v or --json to see all"), "{text}");
    assert_eq!(text.matches("SKILL.md:").count(), 3, "{text}");
    let all = in_terminal(&["-v"]);
    assert_eq!(all.matches("SKILL.md:").count(), 6, "{all}");
    assert!(!all.contains("in all"), "{all}");
    // Without a terminal, every finding is printed.
    let piped = fixture.command(&["list"]).run();
    let stderr = String::from_utf8_lossy(&piped.process.stderr).into_owned();
    assert_eq!(stderr.matches("SKILL.md:").count(), 6, "{stderr}");
}

/// The files of `tests/fixtures/public-style`, unchanged, as the skills of a fixture.
fn fixture_with_public_style_skill() -> Fixture {
    let fixture = Fixture::new();
    let from = root().join("tests/fixtures/public-style/case-report");
    let mut copy = program("cp");
    copy.arg("-a").arg(from).arg(fixture.path("skills"));
    assert!(run_to_completion(&mut copy, b"", DEADLINE).status.success());
    fixture
}

#[test]
fn a_skill_with_a_nested_skill_and_odd_yaml_runs_unchanged() {
    let fixture = fixture_with_public_style_skill();
    let list = fixture.command(&["list", "--json"]).run();
    let names: Vec<_> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names, ["case-report", "timeline", "probe"]);
    let outer = &list["skills"][0];
    assert_eq!(
        outer["description"],
        "Writes a case report from notes. Use when the user asks for a report of a case: it reads notes with one \
         `key: value` on each line, and lists what is missing."
    );
    assert_eq!(
        list["skills"][1]["description"],
        "Sorts the events of a case by date.\nUse when somebody asks what happened first; it's part of case-report."
    );
    let codes: Vec<_> = list["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["code"].clone())
        .collect();
    assert!(
        codes.contains(&json!("nested_skill")) && codes.contains(&json!("loose_yaml")),
        "{codes:?}"
    );
    let info = fixture.command(&["info", "case-report", "--json"]).run();
    assert_eq!(info["allowed_tools"], json!(["Read", "Bash(python3:*)"]));
    assert_eq!(info["metadata"]["author"], "a clinic in the country");
    assert_eq!(
        info["docs"],
        json!(["references/format.md", "skills/timeline/SKILL.md"])
    );
    let notes = fixture.add_host_file("notes.txt", "Patient: a\nFinding: b: c\n");
    let input = notes.to_str().unwrap();
    let line = "python3 scripts/report.py inputs/notes.txt && cat skills/timeline/SKILL.md | head -2";
    let run = fixture
        .command(&["run", "case-report", "--json", "--input", input, "--", line])
        .run();
    assert_eq!(
        run.expect_report().stdout(),
        "# Case report\n- patient: a\n- finding: b: c\n- treatment: missing\n---\nname: timeline\n"
    );
    let events = fixture.add_host_file("events.txt", "2024-02-01 b\n2024-01-01 a\n");
    let input = events.to_str().unwrap();
    let line = "python3 scripts/sort.py inputs/events.txt";
    let run = fixture
        .command(&["run", "timeline", "--json", "--input", input, "--", line])
        .run();
    assert_eq!(run.expect_report().stdout(), "2024-01-01 a\n2024-02-01 b\n");
}

#[test]
fn other_skills_are_mounted_beside_the_one_that_runs() {
    let fixture = Fixture::new();
    fixture.add_skill("library", &[("scripts/shared.txt", "shared\n")]);
    let line = "cat ../library/scripts/shared.txt";
    let words = ["run", "probe", "--json", "--with-skill", "library", "--", line];
    assert_eq!(fixture.command(&words).run().expect_report().stdout(), "shared\n");
    // The control: without the option, the other skill is not there.
    let without = fixture.command(&["run", "probe", "--json", "--", line]).run();
    assert_ne!(without["exit_code"], 0, "{}", without.describe());
}

#[test]
fn an_input_may_have_a_plain_name() {
    let fixture = Fixture::new();
    let directory = fixture.add_host_file("env/bin/tool", "found\n");
    let env = directory.parent().unwrap().parent().unwrap();
    for mode in ["", ",link"] {
        let input = format!("{}=venv{mode}", env.display());
        let line = "cat inputs/venv/bin/tool $WORK_DIR/inputs/venv/bin/tool";
        let run = fixture
            .command(&["run", "probe", "--json", "--input", &input, "--", line])
            .run();
        assert_eq!(run.expect_report().stdout(), "found\nfound\n", "{mode}");
    }
}
