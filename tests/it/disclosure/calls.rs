//! How calls are written, and how they are answered.

use serde_json::{Value, json};

use super::{call, library, ok, prompt, refused, skill};
use crate::program::World;

#[test]
fn arguments_come_as_json_from_a_file_or_from_standard_input() {
    let world = library();
    world.write("arguments.json", r#"{"skill": "pdf"}"#);
    let docs = json!(["references/fonts.md", "references/forms.md"]);
    let from_file = world
        .run("--skills skills call skill_list_docs @arguments.json")
        .expect_code(0);
    assert_eq!(from_file.json(), docs);
    let program = env!("CARGO_BIN_EXE_skillbox").as_ref();
    let words = ["--skills", "skills", "call", "skill_list_docs", "-"];
    assert_eq!(
        world
            .run_other(program, &words, r#"{"skill": "pdf"}"#)
            .expect_code(0)
            .json(),
        docs
    );
    let without = world.run("--skills skills call skill_list").expect_code(0).json();
    assert_eq!(without["skills"].as_array().unwrap().len(), 3);
    for (arguments, expected) in [
        ("{", "not JSON"),
        ("@none.json", "cannot open none.json"),
        ("[1]", "skill_load"),
    ] {
        let ran = world
            .run(&format!("--skills skills call skill_load {arguments}"))
            .expect_code(1);
        let error = &ran.json()["error"];
        assert_eq!(error["code"], "invalid_request");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let world = library();
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
        let error = refused(&world, tool, &arguments, "");
        assert!(
            error["field"].as_str().unwrap_or_default().starts_with(field),
            "{tool} {arguments}: {error}"
        );
    }
}

#[test]
fn what_is_no_tool_is_told_what_there_is() {
    let world = library();
    let error = refused(&world, "pdf", &json!({}), "");
    assert_eq!(error["code"], "unknown_tool");
    assert_eq!(error["hint"], "load it: skill_load(\"pdf\")");
    let error = refused(&world, "pdf", &json!({}), "--dialect deepagents");
    assert_eq!(error["hint"], "load it: load_skill(\"pdf\")");
    ok(&world, "skill_load", &json!({"skill": "git"}), "--session s");
    let error = refused(&world, "pdf", &json!({}), "--session s --policy restrict");
    assert_eq!(error["code"], "unknown_tool", "no policy speaks of what is no tool");
    let error = refused(&world, "skill_exec", &json!({}), "--dialect trpc");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .ends_with("skill_load, skill_select_docs, skill_list_docs, skill_run"),
        "{error}"
    );
    assert_eq!(
        refused(&world, "load_skill", &json!({"skill_name": "pdf"}), "")["code"],
        "unknown_tool"
    );
}

#[test]
fn unknown_skills_get_the_nearest_names() {
    let world = library();
    skill(&world, "pdf-forms", "description: Fills forms.", "");
    let error = refused(&world, "skill_load", &json!({"skill": "pdf-form"}), "");
    assert_eq!(error["code"], "unknown_skill");
    assert_eq!(
        error["message"],
        "unknown skill \"pdf-form\"; the nearest are: pdf-forms, pdf, plain"
    );
    let error = refused(
        &world,
        "load_skill",
        &json!({"skill_name": "x"}),
        "--dialect deepagents",
    );
    assert_eq!(
        error["message"],
        "Error: Skill 'x' not found. Available skills: git, pdf, pdf-forms, plain"
    );
    let error = refused(
        &world,
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
fn without_an_executor_a_run_says_so() {
    let world = library();
    let run = json!({"skill": "pdf", "command": "true"});
    let nowhere = "--dialect trpc --executor docker --docker-host unix:///no/such/socket";
    let error = refused(&world, "skill_run", &run, nowhere);
    assert_eq!(error["code"], "executor_unavailable");
    assert!(
        error["message"].as_str().unwrap().contains("does not answer"),
        "{error}"
    );
}

#[test]
fn a_manual_skill_is_for_people() {
    let world = library();
    skill(
        &world,
        "release",
        "description: Ships it.\ndisable-model-invocation: true\nargument-hint: \"[version]\"",
        "Ship $1.\n",
    );
    let load = json!({"skill": "release", "arguments": "2.0"});
    assert!(prompt(&world, "").contains("- release [Manual only]: Ships it."));
    assert_eq!(refused(&world, "skill_load", &load, "")["code"], "manual_only");
    assert_eq!(
        refused(&world, "skill_load", &load, "--caller model")["code"],
        "manual_only"
    );
    assert_eq!(
        ok(&world, "skill_load", &load, "--caller user")["instructions"],
        "Ship 2.0.\n"
    );
    assert!(prompt(&world, "--loaded release").contains("- release [Loaded] [Manual only]"));
}

#[test]
fn model_and_context_reach_the_host_in_every_dialect() {
    let world = library();
    skill(
        &world,
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
        let result = ok(&world, tool, &json!({key: "big"}), &format!("--dialect {dialect}"));
        assert_eq!(
            (&result["model"], &result["context"]),
            (&json!("large"), &json!("fork")),
            "{dialect}"
        );
    }
}

#[test]
fn deltas_are_written_as_each_dialect_keeps_its_state() {
    let world = library();
    let delta = |tool: &str, arguments: Value, words: &str| ok(&world, tool, &arguments, words)["state_delta"].clone();
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
    let again = ok(&world, "load_skill", &json!({"skill_name": "pdf"}), deepagents);
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
fn a_prompt_can_pretend() {
    let world = library();
    let shown = prompt(&world, "--loaded pdf --loaded git");
    assert!(
        shown.contains("The body of pdf.") && shown.contains("The body of git."),
        "{shown}"
    );
    ok(&world, "skill_load", &json!({"skill": "plain"}), "--session s");
    let shown = prompt(&world, "--session s --loaded pdf");
    assert!(
        shown.contains("The body of plain.") && shown.contains("The body of pdf."),
        "{shown}"
    );
    assert!(
        !prompt(&world, "--session s").contains("The body of pdf."),
        "nothing of it is kept"
    );
    let ran = world
        .run("--skills skills prompt --loaded nothing --json")
        .expect_code(1);
    assert_eq!(ran.json()["error"]["code"], "unknown_skill");
    let json = world
        .run("--skills skills prompt --loaded pdf --json")
        .expect_code(0)
        .json();
    assert_eq!(json["prompt"], prompt(&world, "--loaded pdf"));
    assert_eq!(json["characters"], json["prompt"].as_str().unwrap().chars().count());
    assert_eq!(json["loaded"], json!(["pdf"]));
    for dialect in ["trpc", "deepagents", "saa", "agentskills"] {
        prompt(&world, &format!("--loaded pdf --dialect {dialect}"));
    }
}

#[test]
fn an_empty_catalogue_has_little_to_say() {
    let world = World::new();
    world.write("skills/README", "");
    for dialect in ["skillbox", "trpc", "saa"] {
        assert_eq!(prompt(&world, &format!("--dialect {dialect}")), "", "{dialect}");
    }
    assert!(
        prompt(&world, "--dialect deepagents").contains("(No skills available yet. You can create skills in skills)")
    );
    assert!(prompt(&world, "--dialect agentskills").contains("<available_skills>"));
}

#[test]
fn settings_come_from_every_layer() {
    let mut world = library();
    ok(&world, "skill_load", &json!({"skill": "git"}), "--session s");
    let ask = json!({"tool": "Edit"});
    let may = |world: &World, words: &str| {
        call(world, "wrap_tool_call", &ask, &format!("--session s {words}")).code == Some(0)
    };
    assert!(may(&world, ""), "recommended only");
    world.write("skillbox.toml", "policy = \"restrict\"\n");
    assert!(!may(&world, ""));
    world.set("SKILLBOX_POLICY", "recommend");
    assert!(may(&world, ""));
    assert!(!may(&world, "--policy strict"));
    assert!(may(&world, "--policy strict --always-allowed Edit"));
    world.set("SKILLBOX_ALWAYS_ALLOWED", "Write,Edit");
    assert!(may(&world, "--policy strict"));
    assert!(!may(&world, "--policy strict --always-allowed Write"));
    world.set("SKILLBOX_DIALECT", "trpc");
    assert_eq!(refused(&world, "skill_list", &json!({}), "")["code"], "unknown_tool");
    let ran = call(&world, "skill_load", &json!({"skill": "pdf"}), "--policy lax").expect_code(2);
    assert_eq!(
        ran.json()["error"]["message"],
        "--policy: \"lax\" is no policy: recommend, restrict, strict are known"
    );
}
