//! The arguments of calls, and their results.

use serde_json::{Value, json};

use super::{call, call_ok, call_refused, cli_with_skills, prompt, write_skill};
use crate::cli::Cli;

#[test]
fn arguments_are_read_from_json_a_file_or_standard_input() {
    let cli = cli_with_skills();
    cli.write_file("arguments.json", r#"{"skill": "pdf"}"#);
    let docs = json!(["references/fonts.md", "references/forms.md"]);
    let from_file = cli
        .run("--skills skills call skill_list_docs @arguments.json")
        .expect_code(0);
    assert_eq!(from_file.json(), docs);
    let program = env!("CARGO_BIN_EXE_skillbox").as_ref();
    let flags = ["--skills", "skills", "call", "skill_list_docs", "-"];
    assert_eq!(
        cli.run_program(program, &flags, r#"{"skill": "pdf"}"#)
            .expect_code(0)
            .json(),
        docs
    );
    let without = cli.run("--skills skills call skill_list").expect_code(0).json();
    assert_eq!(without["skills"].as_array().unwrap().len(), 3);
    for (arguments, expected) in [
        ("{", "not JSON"),
        ("@none.json", "cannot open none.json"),
        ("[1]", "skill_load"),
    ] {
        let output = cli
            .run(&format!("--skills skills call skill_load {arguments}"))
            .expect_code(1);
        let error = &output.json()["error"];
        assert_eq!(error["code"], "invalid_request");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
}

#[test]
fn invalid_arguments_are_named() {
    let cli = cli_with_skills();
    for (tool, arguments, field) in [
        ("skill_load", json!({}), "skill"),
        ("skill_load", json!({"skill": 7}), "skill"),
        ("skill_load", json!({"skill": "pdf", "docs": "x"}), "docs"),
        ("skill_load", json!({"skill": "pdf", "doc": []}), "doc"),
        ("skill_select_docs", json!({"skill": "pdf", "mode": "drop"}), "mode"),
        (
            "skill_read",
            json!({"skill": "pdf", "path": "x", "offset": -1}),
            "offset",
        ),
        (
            "skill_run",
            json!({"skill": "pdf", "command": "x", "inputs": [{"form": "x"}]}),
            "inputs[0].form",
        ),
        (
            "skill_run",
            json!({"skill": "pdf", "command": "x", "outputs": {"globs": [1]}}),
            "outputs.globs[0]",
        ),
        ("skill_run", json!({"skill": "pdf"}), "command"),
        (
            "skill_run",
            json!({"skill": "pdf", "command": "x", "cwd": "../.."}),
            "cwd",
        ),
        ("wrap_tool_call", json!({"arguments": {}}), "tool"),
        ("before_agent", json!({"skills": ["../x"]}), "skills"),
    ] {
        let error = call_refused(&cli, tool, &arguments, "");
        assert!(
            error["field"].as_str().unwrap_or_default().starts_with(field),
            "{tool} {arguments}: {error}"
        );
    }
}

#[test]
fn an_unknown_tool_error_lists_the_tools() {
    let cli = cli_with_skills();
    let error = call_refused(&cli, "pdf", &json!({}), "");
    assert_eq!(error["code"], "unknown_tool");
    assert_eq!(error["hint"], "load it: skill_load(\"pdf\")");
    let error = call_refused(&cli, "pdf", &json!({}), "--dialect deepagents");
    assert_eq!(error["hint"], "load it: load_skill(\"pdf\")");
    call_ok(&cli, "skill_load", &json!({"skill": "git"}), "--session s");
    let error = call_refused(&cli, "pdf", &json!({}), "--session s --policy restrict");
    assert_eq!(
        error["code"], "unknown_tool",
        "the policy does not apply to an unknown tool"
    );
    let error = call_refused(&cli, "skill_exec", &json!({}), "--dialect trpc");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .ends_with("skill_load, skill_select_docs, skill_list_docs, skill_run"),
        "{error}"
    );
    assert_eq!(
        call_refused(&cli, "load_skill", &json!({"skill_name": "pdf"}), "")["code"],
        "unknown_tool"
    );
}

#[test]
fn an_unknown_skill_error_names_the_nearest_skills() {
    let cli = cli_with_skills();
    write_skill(&cli, "pdf-forms", "description: Fills forms.", "");
    let error = call_refused(&cli, "skill_load", &json!({"skill": "pdf-form"}), "");
    assert_eq!(error["code"], "unknown_skill");
    assert_eq!(
        error["message"],
        "unknown skill \"pdf-form\"; the nearest are: pdf-forms, pdf, plain"
    );
    let error = call_refused(&cli, "load_skill", &json!({"skill_name": "x"}), "--dialect deepagents");
    assert_eq!(
        error["message"],
        "Error: Skill 'x' not found. Available skills: git, pdf, pdf-forms, plain"
    );
    let error = call_refused(
        &cli,
        "skill_run",
        &json!({"skill": "pfd", "command": "x"}),
        "--dialect trpc",
    );
    assert!(
        error["message"].as_str().unwrap().starts_with("unknown skill \"pfd\""),
        "{error}"
    );
}

#[test]
fn a_run_without_an_executor_is_refused() {
    let cli = cli_with_skills();
    let run = json!({"skill": "pdf", "command": "true"});
    let no_daemon = "--dialect trpc --executor docker --docker-host unix:///no/such/socket";
    let error = call_refused(&cli, "skill_run", &run, no_daemon);
    assert_eq!(error["code"], "executor_unavailable");
    assert!(
        error["message"].as_str().unwrap().contains("does not answer"),
        "{error}"
    );
}

#[test]
fn a_manual_only_skill_cannot_be_loaded_by_a_model() {
    let cli = cli_with_skills();
    write_skill(
        &cli,
        "release",
        "description: Ships it.\ndisable-model-invocation: true\nargument-hint: \"[version]\"",
        "Ship $1.\n",
    );
    let load = json!({"skill": "release", "arguments": "2.0"});
    assert!(prompt(&cli, "").contains("- release [Manual only]: Ships it."));
    assert_eq!(call_refused(&cli, "skill_load", &load, "")["code"], "manual_only");
    assert_eq!(
        call_refused(&cli, "skill_load", &load, "--caller model")["code"],
        "manual_only"
    );
    assert_eq!(
        call_ok(&cli, "skill_load", &load, "--caller user")["instructions"],
        "Ship 2.0.\n"
    );
    assert!(prompt(&cli, "--loaded release").contains("- release [Loaded] [Manual only]"));
}

#[test]
fn model_and_context_are_returned_in_every_dialect() {
    let cli = cli_with_skills();
    write_skill(
        &cli,
        "big",
        "description: Wants much.\nmodel: large\ncontext: fork",
        "Body.\n",
    );
    for (dialect, tool, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("deepagents", "load_skill", "skill_name"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let result = call_ok(&cli, tool, &json!({key: "big"}), &format!("--dialect {dialect}"));
        assert_eq!(
            (&result["model"], &result["context"]),
            (&json!("large"), &json!("fork")),
            "{dialect}"
        );
    }
}

#[test]
fn state_deltas_use_the_state_keys_of_each_dialect() {
    let cli = cli_with_skills();
    let delta =
        |tool: &str, arguments: Value, flags: &str| call_ok(&cli, tool, &arguments, flags)["state_delta"].clone();
    let trpc = "--dialect trpc --session trpc";
    assert_eq!(
        delta("skill_load", json!({"skill": "pdf", "include_all_docs": true}), trpc),
        json!({"temp:skill:loaded:pdf": "1", "temp:skill:docs:pdf": "*"})
    );
    assert_eq!(
        delta(
            "skill_select_docs",
            json!({"skill": "pdf", "docs": ["references/forms.md"]}),
            trpc
        ),
        json!({"temp:skill:docs:pdf": "[\"references/forms.md\"]"})
    );
    let deepagents = "--dialect deepagents --session deepagents";
    let started = delta("before_agent", json!({}), deepagents);
    assert_eq!(
        (&started["skills_loaded"], &started["skill_resources"]),
        (&json!([]), &json!({}))
    );
    assert_eq!(
        started["skills_metadata"][1]["allowed_tools"],
        json!(["Bash(pdftotext:*)", "Read"])
    );
    assert_eq!(
        delta("before_agent", json!({}), deepagents),
        json!({}),
        "a second start changes nothing"
    );
    delta("load_skill", json!({"skill_name": "git"}), deepagents);
    let loaded = delta("load_skill", json!({"skill_name": "pdf"}), deepagents);
    assert_eq!(loaded["skills_loaded"], json!(["git", "pdf"]), "the whole list");
    assert_eq!(loaded["skill_resources"]["pdf"][0]["type"], "script");
    let again = call_ok(&cli, "load_skill", &json!({"skill_name": "pdf"}), deepagents);
    assert_eq!(
        again["content"],
        "Skill 'pdf' is already loaded. Its instructions are already active."
    );
    assert_eq!(again["state_delta"], json!({}));
    let saa = "--dialect saa --session saa";
    assert_eq!(
        delta("read_skill", json!({"skill_name": "pdf"}), saa),
        json!({"read_skills": ["pdf"]})
    );
    let disabled = delta("disable_skill", json!({"skill_name": "pdf"}), saa);
    assert_eq!(disabled, json!({"read_skills": [], "disabled_skills": ["pdf"]}));
}

#[test]
fn a_prompt_can_show_skills_as_loaded() {
    let cli = cli_with_skills();
    let shown = prompt(&cli, "--loaded pdf --loaded git");
    assert!(
        shown.contains("The body of pdf.") && shown.contains("The body of git."),
        "{shown}"
    );
    call_ok(&cli, "skill_load", &json!({"skill": "plain"}), "--session s");
    let shown = prompt(&cli, "--session s --loaded pdf");
    assert!(
        shown.contains("The body of plain.") && shown.contains("The body of pdf."),
        "{shown}"
    );
    assert!(
        !prompt(&cli, "--session s").contains("The body of pdf."),
        "the session is unchanged"
    );
    let output = cli.run("--skills skills prompt --loaded nothing --json").expect_code(1);
    assert_eq!(output.json()["error"]["code"], "unknown_skill");
    let json = cli
        .run("--skills skills prompt --loaded pdf --json")
        .expect_code(0)
        .json();
    assert_eq!(json["prompt"], prompt(&cli, "--loaded pdf"));
    assert_eq!(json["characters"], json["prompt"].as_str().unwrap().chars().count());
    assert_eq!(json["loaded"], json!(["pdf"]));
    for dialect in ["trpc", "deepagents", "saa", "agentskills"] {
        prompt(&cli, &format!("--loaded pdf --dialect {dialect}"));
    }
}

#[test]
fn an_empty_catalog_gives_an_empty_prompt() {
    let cli = Cli::new();
    cli.write_file("skills/README", "");
    for dialect in ["skillbox", "trpc", "saa"] {
        assert_eq!(prompt(&cli, &format!("--dialect {dialect}")), "", "{dialect}");
    }
    assert!(
        prompt(&cli, "--dialect deepagents").contains("(No skills available yet. You can create skills in skills)")
    );
    assert!(prompt(&cli, "--dialect agentskills").contains("<available_skills>"));
}

#[test]
fn settings_are_read_from_every_layer() {
    let mut cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "git"}), "--session s");
    let call_input = json!({"tool": "Edit"});
    let is_allowed = |cli: &Cli, flags: &str| {
        call(cli, "wrap_tool_call", &call_input, &format!("--session s {flags}")).code == Some(0)
    };
    assert!(is_allowed(&cli, ""), "the default only recommends");
    cli.write_file("skillbox.toml", "policy = \"restrict\"\n");
    assert!(!is_allowed(&cli, ""));
    cli.set_variable("SKILLBOX_POLICY", "recommend");
    assert!(is_allowed(&cli, ""));
    assert!(!is_allowed(&cli, "--policy strict"));
    assert!(is_allowed(&cli, "--policy strict --always-allowed Edit"));
    cli.set_variable("SKILLBOX_ALWAYS_ALLOWED", "Write,Edit");
    assert!(is_allowed(&cli, "--policy strict"));
    assert!(!is_allowed(&cli, "--policy strict --always-allowed Write"));
    cli.set_variable("SKILLBOX_DIALECT", "trpc");
    assert_eq!(call_refused(&cli, "skill_list", &json!({}), "")["code"], "unknown_tool");
    let output = call(&cli, "skill_load", &json!({"skill": "pdf"}), "--policy lax").expect_code(2);
    assert_eq!(
        output.json()["error"]["message"],
        "--policy: \"lax\" is not a policy: use recommend, restrict or strict"
    );
}
