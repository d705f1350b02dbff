//! Spring AI Alibaba: tools of the host that a successful read unlocks, over every interface.

use serde_json::{Value, json};

use super::mcp_text_client::McpTextClient;
use super::skill_dir::SkillDir;
use crate::cli::Cli;
use crate::disclosure::{call_ok, call_refused, write_skill};
use crate::harness::HttpServer;

const PDF: &str = "description: Reads PDFs.\nallowed_tools: [extract_pdf, shared, not_registered]";
const DATA: &str = "description: Works on data.\nallowedTools: [process_data, shared]";

const DIALECT_TOOLS: [&str; 3] = ["read_skill", "search_skills", "disable_skill"];

/// Tools of one skill (`groupedTools`), and tools that `allowed_tools` names.
fn registration() -> Value {
    let schema = json!({"type": "object", "properties": {"page": {"type": "integer"}}});
    json!({
        "grouped_tools": {"pdf-extractor": [{"name": "render_page", "description": "Renders.", "input_schema": schema}]},
        "tools": ["extract_pdf", "shared", "process_data", "of_no_skill"],
    })
}

fn with_dialect_tools(host_tools: &[&str]) -> Vec<String> {
    DIALECT_TOOLS
        .iter()
        .chain(host_tools)
        .map(|name| (*name).to_owned())
        .collect()
}

fn names(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().unwrap_or_else(|| panic!("{tools}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The three turns of the document. `read` reads a skill in a new turn and returns whether it was found.
fn three_turns(list: &mut dyn FnMut() -> Vec<String>, read: &mut dyn FnMut(&str) -> bool) {
    assert_eq!(list(), with_dialect_tools(&[]), "nothing is read yet");
    assert!(!read("pdf-extractr"));
    assert_eq!(list(), with_dialect_tools(&[]), "a failed read unlocks nothing");
    assert!(read("pdf-extractor"));
    let first = ["render_page", "extract_pdf", "shared"];
    assert_eq!(list(), with_dialect_tools(&first));
    assert!(read("data-processor"));
    let both = ["render_page", "extract_pdf", "shared", "process_data"];
    assert_eq!(
        list(),
        with_dialect_tools(&both),
        "tools accumulate, without duplicates"
    );
}

#[test]
fn seed_003_dynamic_tools_on_the_command_line() {
    let cli = Cli::new();
    write_skill(&cli, "pdf-extractor", PDF, "");
    write_skill(&cli, "data-processor", DATA, "");
    let flags = "--dialect saa --session s";
    let registered = call_ok(&cli, "register_tools", &registration(), flags);
    assert_eq!(registered["visible"], json!([]));
    let list_as = |format: &str| {
        let line = format!("--skills skills tools {flags} --format {format}");
        cli.run(&line).expect_code(0).json()
    };
    three_turns(&mut || names(&list_as("mcp")), &mut |skill| {
        call_ok(&cli, "before_agent", &json!({}), flags);
        let arguments = json!({"skill_name": skill}).to_string();
        let words = [
            "--skills",
            "skills",
            "call",
            "read_skill",
            &arguments,
            "--dialect",
            "saa",
            "--session",
            "s",
        ];
        cli.run_args(&words).code == Some(0)
    });
    let tool = list_as("mcp")[3].clone();
    assert_eq!(tool["inputSchema"]["properties"]["page"]["type"], "integer");
    assert_eq!(tool["_meta"], json!({"skillbox/host_tool": true}));
    let openai = list_as("openai")[3].clone();
    assert_eq!(openai["function"]["name"], "render_page");

    let error = call_refused(&cli, "extract_pdf", &json!({}), flags);
    assert_eq!(error["code"], "unknown_tool");
    assert!(
        error["message"].as_str().unwrap().contains("the host runs it"),
        "{error}"
    );
    call_ok(&cli, "disable_skill", &json!({"skill_name": "pdf-extractor"}), flags);
    assert_eq!(names(&list_as("mcp")), with_dialect_tools(&["process_data", "shared"]));
    call_ok(&cli, "register_tools", &json!({"remove": ["shared"]}), flags);
    assert_eq!(names(&list_as("mcp")), with_dialect_tools(&["process_data"]));
}

#[test]
fn seed_003_invalid_registrations_are_refused() {
    let cli = Cli::new();
    write_skill(&cli, "pdf-extractor", PDF, "");
    let many: Vec<String> = (0..513).map(|number| format!("tool_{number}")).collect();
    for (arguments, code, field) in [
        (json!({"tools": ["read_skill"]}), "invalid_request", json!("tools")),
        (
            json!({"grouped_tools": {"pdf-extractor": ["search_skills"]}}),
            "invalid_request",
            json!("grouped_tools.pdf-extractor"),
        ),
        (json!({"tools": ["a b"]}), "invalid_request", json!("tools[0]")),
        (json!({"tool": []}), "invalid_request", json!("tool")),
        (
            json!({"grouped_tools": {"../x": []}}),
            "invalid_request",
            json!("grouped_tools"),
        ),
        (json!({"tools": many}), "limit_exceeded", Value::Null),
        (
            json!({"tools": [{"name": "large", "description": "x".repeat(600 << 10)}]}),
            "limit_exceeded",
            Value::Null,
        ),
    ] {
        let path = "arguments.json";
        cli.write_file(path, arguments.to_string());
        let line = format!("--skills skills call register_tools @{path} --dialect saa --session s");
        let error = cli.run(&line).expect_code(1).json()["error"].take();
        let shown: String = error.to_string().chars().take(300).collect();
        assert_eq!(error["code"], code, "{shown}");
        let names_field = error.get("field").is_none_or(|found| {
            found
                .as_str()
                .unwrap_or_default()
                .starts_with(field.as_str().unwrap_or_default())
        });
        assert!(names_field, "{shown}");
    }
    let unknown = call_ok(
        &cli,
        "register_tools",
        &json!({"grouped_tools": {"later": ["x"]}}),
        "--dialect saa --session s",
    );
    assert_eq!(
        unknown["unknown_skills"],
        json!(["later"]),
        "a skill may be added later"
    );
}

#[test]
fn seed_003_dynamic_tools_over_http() {
    let skills = SkillDir::new();
    skills.write("pdf-extractor", PDF, "").write("data-processor", DATA, "");
    let (server, _) = HttpServer::start(
        &["--skills", skills.skills().to_str().unwrap(), "--dialect", "saa"],
        &[],
    );
    let post = |path: &str, body: &Value| server.request_json("", "POST", path, Some(body));
    post("/v1/sessions", &json!({"id": "s"})).expect_status(201);
    let call = |tool: &str, body: &Value| post(&format!("/v1/sessions/s/tools/{tool}"), body);
    call("register_tools", &registration()).expect_status(200);
    let list = || {
        server
            .request_json("", "GET", "/v1/sessions/s/tools", None)
            .expect_status(200)
    };
    three_turns(&mut || names(&list()), &mut |skill| {
        call("before_agent", &json!({})).expect_status(200);
        call("read_skill", &json!({"skill_name": skill})).status == 200
    });
    post("/v1/sessions", &json!({"id": "t"})).expect_status(201);
    let other = server
        .request_json("", "GET", "/v1/sessions/t/tools", None)
        .expect_status(200);
    assert_eq!(
        names(&other),
        with_dialect_tools(&[]),
        "another session has none of them"
    );
}

#[test]
fn seed_003_dynamic_tools_over_mcp() {
    let skills = SkillDir::new();
    skills.write("pdf-extractor", PDF, "").write("data-processor", DATA, "");
    let client = McpTextClient::connect(&skills.skills(), &skills.state(), &["--dialect", "saa"]);
    let client = std::cell::RefCell::new(client);
    client.borrow_mut().call_ok("register_tools", registration());
    three_turns(&mut || client.borrow_mut().tool_names(), &mut |skill| {
        let mut client = client.borrow_mut();
        client.call_ok("before_agent", json!({}));
        !client.call("read_skill", json!({"skill_name": skill})).is_error
    });
    let mut client = client.into_inner();
    let announced = client
        .notifications
        .iter()
        .filter(|method| method.ends_with("tools/list_changed"));
    assert_eq!(
        announced.count(),
        2,
        "each read that unlocks tools is announced: {:?}",
        client.notifications
    );
    let refused = client.request("tools/call", json!({"name": "extract_pdf", "arguments": {}}));
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the host runs it"),
        "{refused}"
    );
}
