//! Tool definitions and schemas, and the tools of each dialect.

use serde_json::{Value, json};
use skillbox_loader::{Dialect, Tool, ToolFormat};
use skillbox_model::ErrorCode;

use crate::library::{Library, settings};

fn names(dialect: Dialect) -> Vec<String> {
    let host = Library::sample().host(dialect);
    host.session
        .tools(&host.agent)
        .into_iter()
        .map(|tool| tool.name)
        .collect()
}

#[test]
fn each_dialect_has_its_tools_in_its_order() {
    assert_eq!(
        names(Dialect::Trpc),
        ["skill_load", "skill_select_docs", "skill_list_docs", "skill_run"]
    );
    assert_eq!(names(Dialect::Deepagents), ["load_skill"]);
    assert_eq!(names(Dialect::Saa), ["read_skill", "search_skills", "disable_skill"]);
    assert_eq!(names(Dialect::Agentskills), Vec::<String>::new());
    assert_eq!(
        names(Dialect::Skillbox),
        [
            "skill_list",
            "skill_load",
            "skill_unload",
            "skill_list_docs",
            "skill_select_docs",
            "skill_read",
            "skill_run",
            "skill_search",
            "skill_disable",
            "skill_enable"
        ]
    );
}

#[test]
fn definitions_are_valid_schemas_of_draft_2020_12() {
    for dialect in Dialect::ALL {
        let host = Library::sample().host(*dialect);
        for tool in host.session.tools(&host.agent) {
            let schema = Value::Object(tool.input_schema.clone());
            assert!(
                jsonschema::draft202012::meta::is_valid(&schema),
                "{dialect} {}: {schema}",
                tool.name
            );
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            let text = schema.to_string();
            for unwanted in ["$ref", "$defs", "$schema", "anyOf", "oneOf", "\"null\"", "\"format\""] {
                assert!(
                    !text.contains(unwanted),
                    "{dialect} {}: {unwanted} in {text}",
                    tool.name
                );
            }
            if let Some(output) = &tool.output_schema {
                assert!(
                    jsonschema::draft202012::meta::is_valid(output),
                    "{dialect} {}",
                    tool.name
                );
                assert_eq!(output["type"], "object", "{}", tool.name);
            }
        }
    }
}

#[test]
fn results_match_their_schemas() {
    let host = Library::sample().host(Dialect::Skillbox);
    let tools = host.session.tools(&host.agent);
    for (tool, arguments) in [
        ("skill_list", json!({"query": "pdf"})),
        ("skill_load", json!({"skill": "pdf", "docs": ["references/forms.md"]})),
        ("skill_select_docs", json!({"skill": "pdf", "mode": "clear"})),
        ("skill_read", json!({"skill": "pdf", "path": "SKILL.md"})),
        ("skill_search", json!({"query": "csv"})),
        ("skill_unload", json!({"skill": "pdf"})),
        ("skill_disable", json!({"skill": "pdf"})),
        ("skill_enable", json!({"skill": "pdf"})),
    ] {
        let definition = tools.iter().find(|definition| definition.name == tool).unwrap();
        let input = jsonschema::draft202012::new(&Value::Object(definition.input_schema.clone())).unwrap();
        assert!(input.is_valid(&arguments), "{tool}");
        assert!(!input.is_valid(&json!({"unknown": 1})), "{tool}");
        let output = jsonschema::draft202012::new(definition.output_schema.as_ref().unwrap()).unwrap();
        let result = host.ok(tool, arguments).result;
        assert!(output.is_valid(&result), "{tool}: {result}");
    }
}

#[test]
fn skills_are_enumerated_up_to_256() {
    let tool = |skills: usize| {
        let library = Library::new();
        for n in 0..skills {
            library.skill(&format!("s{n}"), "description: d", "");
        }
        let host = library.host(Dialect::Trpc);
        host.session.tools(&host.agent)[0].input_schema["properties"]["skill"].clone()
    };
    assert_eq!(tool(256)["enum"].as_array().unwrap().len(), 256);
    assert!(tool(257).get("enum").is_none());
    assert!(tool(0).get("enum").is_none());
}

#[test]
fn definitions_convert_to_every_format() {
    let host = Library::sample().host(Dialect::Deepagents);
    let tool = &host.session.tools(&host.agent)[0];
    let schema = json!({
        "type": "object",
        "properties": {
            "skill_name": {
                "type": "string",
                "description": "Name of the skill to load from the available skills list.",
                "enum": ["csv-report", "pdf"],
            }
        },
        "required": ["skill_name"],
        "additionalProperties": false,
    });
    let description = "Load a skill's full instructions and discover its resources. Use this instead of read_file when \
                       you need to activate a skill from the available skills list.";
    let mcp = tool.to_format(ToolFormat::Mcp);
    assert_eq!((&mcp["name"], &mcp["inputSchema"]), (&json!("load_skill"), &schema));
    let openai = json!({"type": "function", "function": {"name": "load_skill", "description": description, "parameters": schema}});
    assert_eq!(tool.to_format(ToolFormat::OpenAi), openai);
    let anthropic = json!({"name": "load_skill", "description": description, "input_schema": schema});
    assert_eq!(tool.to_format(ToolFormat::Anthropic), anthropic);
}

#[test]
fn guidance_mentions_only_registered_tools() {
    let host = Library::sample().host_with(settings(Dialect::Skillbox, |settings| {
        settings.registered_tools = [Tool::Load].into();
    }));
    let prompt = host.prompt();
    assert!(prompt.contains("`skill_load`"), "{prompt}");
    for tool in [
        "skill_run",
        "skill_search",
        "skill_unload",
        "skill_select_docs",
        "skill_read",
    ] {
        assert!(!prompt.contains(tool), "{tool} in {prompt}");
    }
    assert_eq!(
        host.refused("skill_search", json!({"query": "x"})).code,
        ErrorCode::UnknownTool
    );
    assert_eq!(host.session.tools(&host.agent).len(), 1);
}

#[test]
fn a_skill_is_read_by_name_or_by_path() {
    let library = Library::sample();
    let host = library.host(Dialect::Saa);
    let path = library.path().join("pdf");
    let by_name = host.ok("read_skill", json!({"skill_name": "pdf"})).text;
    assert_eq!(by_name, "# PDF\n\nRead [forms](references/forms.md).\n");
    for pointer in [
        json!({"skill_path": path}),
        json!({"skill_path": path.join("SKILL.md")}),
        json!({"skill_name": "pdf", "skill_path": format!("{}/", path.display())}),
    ] {
        assert_eq!(host.ok("read_skill", pointer.clone()).text, by_name, "{pointer}");
    }
    let error = host.refused("read_skill", json!({}));
    assert!(error.message.contains("required"), "{}", error.message);
    let error = host.refused("read_skill", json!({"skill_name": "csv-report", "skill_path": path}));
    assert!(
        error.message.contains("must refer to the same skill"),
        "{}",
        error.message
    );
    for path in ["/nowhere", "\0", "/", "pdf"] {
        assert_eq!(
            host.refused("read_skill", json!({"skill_path": path})).code,
            ErrorCode::UnknownSkill,
            "{path:?}"
        );
    }
}

#[test]
fn search_ranks_hits_and_a_blank_query_lists_all() {
    let library = Library::new();
    library.skill("pdf", "description: d", "");
    library.skill("pdf-forms", "description: d", "");
    library.skill("my-pdf", "description: d", "");
    library.skill("other", "description: reads PDF too", "");
    library.skill("unrelated", "description: d", "");
    let host = library.host(Dialect::Skillbox);
    let ranks = |query: &str| {
        let hits = host.ok("skill_search", json!({"query": query})).result["hits"].clone();
        let hits = hits.as_array().unwrap().iter();
        hits.map(|hit| (hit["name"].as_str().unwrap().to_owned(), hit["rank"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let expected = [("pdf", 0), ("pdf-forms", 1), ("my-pdf", 2), ("other", 3)];
    assert_eq!(ranks("PDF"), expected.map(|(name, rank)| (name.to_owned(), rank)));
    library.skill("words", "description: d", "Only the instructions mention zebras.\n");
    let host = library.host(Dialect::Skillbox);
    let hits = host.ok("skill_search", json!({"query": "zebras"})).result["hits"].clone();
    assert_eq!((&hits[0]["name"], &hits[0]["rank"]), (&json!("words"), &json!(4)));
    assert_eq!(hits[0]["excerpt"], "Only the instructions mention zebras.");
    host.ok("skill_disable", json!({"skill": "words"}));
    assert_eq!(
        host.ok("skill_search", json!({"query": "zebras"})).result["hits"],
        json!([])
    );
    let text = library
        .host(Dialect::Saa)
        .ok("search_skills", json!({"query": "pdf"}))
        .text;
    let lines: Vec<_> = text.lines().map(|line| line.split("**").nth(1).unwrap()).collect();
    assert_eq!(lines, ["pdf", "pdf-forms", "my-pdf", "other"]);
    let blank = library
        .host(Dialect::Saa)
        .ok("search_skills", json!({"query": " "}))
        .text;
    assert_eq!(blank.lines().count(), 6);
    let nothing = library
        .host(Dialect::Saa)
        .ok("search_skills", json!({"query": "zzz"}))
        .text;
    assert_eq!(nothing, "No skills found matching: zzz");
}

#[test]
fn a_disabled_skill_is_hidden_and_its_files_stay() {
    let library = Library::sample();
    let host = library.host(Dialect::Saa);
    host.ok("read_skill", json!({"skill_name": "pdf"}));
    let path = library.path().join("pdf");
    host.ok("disable_skill", json!({"skill_path": path}));
    assert!(!host.prompt().contains("pdf"), "{}", host.prompt());
    assert_eq!(
        host.refused("read_skill", json!({"skill_name": "pdf"})).code,
        ErrorCode::UnknownSkill
    );
    assert_eq!(
        host.ok("search_skills", json!({"query": "pdf"})).text,
        "No skills found matching: pdf"
    );
    assert_eq!(host.loaded(), Vec::<String>::new());
    assert!(path.join("SKILL.md").exists());
    host.ok("read_skill", json!({"skill_name": "csv-report"}));
    assert_eq!(
        host.ok("disable_skill", json!({"skill_name": "pdf"})).text,
        "Skill 'pdf' is already disabled."
    );
    assert_eq!(
        host.refused("disable_skill", json!({"skill_name": "nope"})).code,
        ErrorCode::UnknownSkill
    );
    let ours = library.host(Dialect::Skillbox);
    ours.ok("skill_disable", json!({"skill": "pdf"}));
    assert_eq!(
        ours.refused("skill_load", json!({"skill": "pdf"})).code,
        ErrorCode::SkillDisabled
    );
    let listed = ours.ok("skill_list", json!({"query": "pdf"})).result["skills"][0].clone();
    assert_eq!((&listed["name"], &listed["disabled"]), (&json!("pdf"), &json!(true)));
    ours.ok("skill_enable", json!({"skill": "pdf"}));
    ours.ok("skill_load", json!({"skill": "pdf"}));
}

/// A successful read unlocks tools; they stay when the history is trimmed, without duplicates.
#[test]
fn loaded_skills_unlock_their_tools() {
    use skillbox_loader::DynamicTools;
    let library = Library::new();
    library.skill(
        "pdf",
        "description: d\nallowed_tools: [extract_pdf, shared, missing]",
        "",
    );
    library.skill(
        "data",
        "description: d\nallowed_tools: [\"process_*\", shared, read]",
        "",
    );
    let host = library.host(Dialect::Saa);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let tools = DynamicTools {
        by_skill: [("pdf".to_owned().try_into().unwrap(), words(&["pdf_grouped", "shared"]))].into(),
        unlockable: words(&["extract_pdf", "shared", "process_rows", "process_cells", "secret"])
            .into_iter()
            .collect(),
    };
    let visible = || tools.visible(&words(&["read"]), &host.state(), &host.agent);
    assert_eq!(visible(), ["read"]);
    host.refused("read_skill", json!({"skill_name": "pdx"}));
    assert_eq!(visible(), ["read"], "a failed read unlocks nothing");
    host.ok("read_skill", json!({"skill_name": "pdf"}));
    assert_eq!(visible(), ["read", "pdf_grouped", "shared", "extract_pdf"]);
    host.ok("read_skill", json!({"skill_name": "data"}));
    let both = [
        "read",
        "pdf_grouped",
        "shared",
        "extract_pdf",
        "process_cells",
        "process_rows",
    ];
    assert_eq!(visible(), both);
    host.prompt_after(skillbox_loader::HistoryCompleteness::Trimmed);
    host.start_turn();
    assert_eq!(visible(), both);
}
