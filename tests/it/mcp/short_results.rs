//! What reaches a model: short results, errors that satisfy the declared schemas, and progress during silence.

use serde_json::{Value, json};

use super::fixture::{McpFixture, shipped_skills};
use crate::seeds::mcp_text_client::McpTextClient;

/// The characters of a result that may reach a model, whatever the run wrote.
const MAX_MODEL_TEXT: usize = 20 << 10;

fn connect(fixture: &McpFixture, arguments: &[&str]) -> McpTextClient {
    McpTextClient::connect(&shipped_skills(), &fixture.path("state"), arguments)
}

fn write_table(bytes: usize) -> Value {
    let command = format!("yes '1,\"2\",3' | head -c {bytes} > $OUTPUT_DIR/table.csv");
    json!({"skill": "python-math", "command": command, "output_files": ["out/*"]})
}

#[test]
fn a_large_output_is_short_for_models_and_whole_by_its_link() {
    let fixture = McpFixture::new();
    let mut client = connect(&fixture, &[]);
    let call = json!({"name": "skill_run", "arguments": write_table(1_000_000)});
    let result = client.request("tools/call", call);
    let blocks = result["content"].as_array().unwrap();
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(text.len() <= MAX_MODEL_TEXT, "{} characters", text.len());
    let report: Value = serde_json::from_str(text).unwrap();
    let file = &report["output_files"][0];
    assert_eq!(
        (&file["truncated"], &file["size_bytes"]),
        (&json!(true), &json!(1_000_000))
    );
    assert!(file["content"].as_str().unwrap().starts_with("1,\"2\",3\n"));
    assert!(
        report["primary_output"].get("content").is_none(),
        "{}",
        report["primary_output"]
    );
    assert!(report["enforcement"].is_string(), "one line: {}", report["enforcement"]);
    let structured = &result["structuredContent"];
    assert!(
        structured["enforcement"]["layers"].is_object(),
        "all layers: {structured}"
    );
    assert!(structured.to_string().len() <= MAX_MODEL_TEXT + 4_000);

    let read = client.request("resources/read", json!({"uri": blocks[1]["uri"]}));
    assert_eq!(read["contents"][0]["text"].as_str().unwrap().len(), 1_000_000);

    let small: Value = serde_json::from_str(&client.call_ok("skill_run", write_table(100))).unwrap();
    assert_eq!(small["output_files"][0]["truncated"], false, "a small file is whole");
    let mut none = connect(&fixture, &["--inline-for-models", "0"]);
    let none: Value = serde_json::from_str(&none.call_ok("skill_run", write_table(100))).unwrap();
    assert!(none["output_files"][0].get("content").is_none(), "{none}");
}

#[test]
fn refused_calls_satisfy_the_declared_output_schemas() {
    let fixture = McpFixture::new();
    for (dialect, tool, arguments) in [
        ("skillbox", "skill_run", json!({"skill": "none", "command": "true"})),
        ("skillbox", "skill_load", json!({"skill": "none"})),
        ("skillbox", "skill_list_docs", json!({"skill": "none"})),
        ("trpc", "skill_run", json!({"skill": "none", "command": "true"})),
        ("deepagents", "load_skill", json!({"skill_name": "none"})),
    ] {
        let mut client = connect(&fixture, &["--dialect", dialect]);
        let listed = client.request("tools/list", json!({}));
        let tools = listed["tools"].as_array().unwrap();
        let definition = tools.iter().find(|definition| definition["name"] == tool).unwrap();
        let schema = jsonschema::draft202012::new(&definition["outputSchema"]).unwrap();
        let refused = client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(refused["isError"], true, "{refused}");
        let structured = &refused["structuredContent"];
        assert!(schema.is_valid(structured), "{dialect} {tool}: {structured}");
        assert!(!schema.is_valid(&json!({})), "{dialect} {tool}: the check can fail");
    }
}

#[test]
fn a_silent_run_reports_progress() {
    let fixture = McpFixture::new();
    let mut client = connect(&fixture, &[]);
    let mut run = |command: &str| {
        let call = json!({
            "name": "skill_run", "arguments": {"skill": "python-math", "command": command}, "_meta": {"progressToken": "t"},
        });
        let result = client.request("tools/call", call);
        assert_eq!(result["structuredContent"]["exit_code"], 0, "{result}");
        std::mem::take(&mut client.progress)
    };
    let is_heartbeat = |text: &String| text.contains("[running for ");
    assert!(!run("true").iter().any(is_heartbeat));
    let silent = run("sleep 5");
    assert!(silent.iter().any(is_heartbeat), "{silent:?}");
}
