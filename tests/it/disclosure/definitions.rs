//! The definitions of the tools, in the formats of model interfaces.

use serde_json::{Value, json};

use super::{call_ok, cli_with_skills};
use crate::cli::Cli;

const DIALECTS: [(&str, &[&str]); 5] = [
    (
        "skillbox",
        &[
            "skill_list",
            "skill_load",
            "skill_unload",
            "skill_list_docs",
            "skill_select_docs",
            "skill_read",
            "skill_run",
            "skill_search",
            "skill_disable",
            "skill_enable",
        ],
    ),
    (
        "trpc",
        &["skill_load", "skill_select_docs", "skill_list_docs", "skill_run"],
    ),
    ("deepagents", &["load_skill"]),
    ("saa", &["read_skill", "search_skills", "disable_skill"]),
    ("agentskills", &[]),
];

fn definitions(cli: &Cli, flags: &str) -> Vec<Value> {
    let tools = cli.run(&format!("--skills skills tools {flags}")).expect_code(0).json();
    tools.as_array().unwrap().clone()
}

#[test]
fn definitions_are_valid_schemas_of_draft_2020_12() {
    assert!(
        !jsonschema::draft202012::meta::is_valid(&json!({"type": "objekt"})),
        "the check can fail"
    );
    let cli = cli_with_skills();
    for (dialect, names) in DIALECTS {
        let tools = definitions(&cli, &format!("--dialect {dialect}"));
        let found: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{dialect}");
        for tool in &tools {
            assert!(
                jsonschema::draft202012::meta::is_valid(&tool["inputSchema"]),
                "{dialect}: {tool}"
            );
            assert_eq!(tool["inputSchema"]["type"], "object", "{dialect}: {tool}");
            if let Some(output) = tool.get("outputSchema") {
                assert!(jsonschema::draft202012::meta::is_valid(output), "{dialect}: {tool}");
            }
        }
    }
}

/// The schema of a `tools` array for OpenAI.
/// What only some validators and generators of code know: formats of numbers, and `true` in place of a schema.
fn find_unportable(schema: &Value, path: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                let path = format!("{path}/{key}");
                let is_flag = ["default", "const", "readOnlyHint", "openWorldHint"].contains(&key.as_str());
                if (key == "format" && value.is_string()) || (*value == Value::Bool(true) && !is_flag) {
                    found.push(path.clone());
                }
                find_unportable(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_unportable(item, path, found)),
        _ => {}
    }
}

#[test]
fn definitions_are_portable() {
    let mut found = Vec::new();
    find_unportable(
        &json!({"properties": {"a": true, "b": {"format": "uint64"}}}),
        "",
        &mut found,
    );
    assert_eq!(found, ["/properties/a", "/properties/b/format"], "the check can fail");
    let cli = cli_with_skills();
    for (dialect, _) in DIALECTS {
        let mut found = Vec::new();
        for tool in definitions(&cli, &format!("--dialect {dialect}")) {
            for schema in ["inputSchema", "outputSchema"] {
                find_unportable(&tool[schema], tool["name"].as_str().unwrap(), &mut found);
            }
        }
        assert_eq!(found, [""; 0], "{dialect}");
    }
}

fn openai_schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["type", "function"],
            "additionalProperties": false,
            "properties": {
                "type": {"const": "function"},
                "function": {
                    "type": "object",
                    "required": ["name"],
                    "additionalProperties": false,
                    "properties": {
                        "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
                        "description": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "strict": {"type": "boolean"},
                        "parameters": {"type": "object", "required": ["type", "properties"], "properties": {"type": {"const": "object"}}},
                    },
                },
            },
        },
    })
}

/// The schema of a `tools` array for Anthropic, which allows no `oneOf`, `allOf` or `anyOf` at the top level.
fn anthropic_schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name", "input_schema"],
            "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"},
                "description": {"type": "string", "minLength": 1},
                "input_schema": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {"const": "object"}, "oneOf": false, "allOf": false, "anyOf": false},
                },
            },
        },
    })
}

#[test]
fn definitions_match_the_openai_and_anthropic_formats() {
    let cli = cli_with_skills();
    for (format, shape) in [("openai", openai_schema()), ("anthropic", anthropic_schema())] {
        let shape = jsonschema::draft202012::new(&shape).unwrap();
        for (dialect, names) in DIALECTS {
            let tools = Value::from(definitions(&cli, &format!("--dialect {dialect} --format {format}")));
            let wrong: Vec<String> = shape
                .iter_errors(&tools)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(wrong, [""; 0], "{dialect} {format}");
            assert_eq!(tools.as_array().unwrap().len(), names.len());
        }
        let mcp = Value::from(definitions(&cli, ""));
        assert!(!shape.is_valid(&mcp), "the check can fail");
    }
    cli.run("tools --format nonsense").expect_code(2);
    cli.run("tools --dialect nonsense").expect_code(2);
}

#[test]
fn definitions_accept_valid_arguments_only() {
    let cli = cli_with_skills();
    let tools = definitions(&cli, "");
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        jsonschema::draft202012::new(&tool["inputSchema"]).unwrap()
    };
    let check = |name: &str, arguments: Value, is_valid: bool| {
        assert_eq!(schema(name).is_valid(&arguments), is_valid, "{name} {arguments}");
    };
    check("skill_load", json!({"skill": "pdf"}), true);
    check(
        "skill_load",
        json!({"skill": "pdf", "docs": ["a.md"], "include_all_docs": false, "arguments": "x"}),
        true,
    );
    check("skill_load", json!({"skill": "nothing"}), false);
    check("skill_load", json!({}), false);
    check("skill_load", json!({"skill": "pdf", "doc": "a.md"}), false);
    check("skill_select_docs", json!({"skill": "pdf", "mode": "clear"}), true);
    check("skill_select_docs", json!({"skill": "pdf", "mode": "drop"}), false);
    check("skill_list", json!({}), true);
    check(
        "skill_run",
        json!({"skill": "pdf", "command": "true", "inputs": [{"from": "skill://pdf/x", "mode": "link"}]}),
        true,
    );
    check(
        "skill_run",
        json!({"skill": "pdf", "command": "true", "inputs": [{"to": "x"}]}),
        false,
    );
    check(
        "skill_run",
        json!({"skill": "pdf", "command": "true", "timeout": "5"}),
        false,
    );
}

/// A longer enumeration would cost more tokens than it is worth.
#[test]
fn skill_names_are_enumerated_up_to_256() {
    let cli = cli_with_skills();
    let names = |cli: &Cli| definitions(cli, "")[1]["inputSchema"]["properties"]["skill"]["enum"].clone();
    assert_eq!(names(&cli), json!(["git", "pdf", "plain"]));
    call_ok(&cli, "skill_disable", &json!({"skill": "git"}), "--session s");
    let disabled = definitions(&cli, "--session s");
    assert_eq!(
        disabled[1]["inputSchema"]["properties"]["skill"]["enum"],
        json!(["pdf", "plain"])
    );
    for number in 3..256 {
        super::write_skill(&cli, &format!("skill-{number:03}"), "description: d", "");
    }
    assert_eq!(names(&cli).as_array().map(Vec::len), Some(256));
    super::write_skill(&cli, "one-more", "description: d", "");
    assert_eq!(names(&cli), Value::Null);
}

#[test]
fn results_match_their_output_schemas() {
    let cli = cli_with_skills();
    let tools = definitions(&cli, "");
    for (tool, arguments) in [
        ("skill_list", json!({})),
        ("skill_search", json!({"query": "history"})),
        ("skill_load", json!({"skill": "pdf", "include_all_docs": true})),
        (
            "skill_select_docs",
            json!({"skill": "pdf", "docs": ["references/fonts.md"]}),
        ),
        ("skill_read", json!({"skill": "pdf", "path": "scripts/extract.py"})),
        (
            "skill_run",
            json!({"skill": "pdf", "command": "echo hello > out/x", "output_files": ["out/*"]}),
        ),
        ("skill_unload", json!({"skill": "pdf"})),
        ("skill_disable", json!({"skill": "pdf"})),
        ("skill_enable", json!({"skill": "pdf"})),
    ] {
        let result = call_ok(&cli, tool, &arguments, "--session s");
        let definition = tools.iter().find(|definition| definition["name"] == tool).unwrap();
        let schema = jsonschema::draft202012::new(&definition["outputSchema"]).unwrap();
        let wrong: Vec<String> = schema.iter_errors(&result).map(|error| error.to_string()).collect();
        assert_eq!(wrong, [""; 0], "{tool}: {result}");
        assert!(!schema.is_valid(&json!({})), "{tool}: the check can fail");
    }
}
