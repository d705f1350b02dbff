//! Tool results are short for a model, whichever way the call came, and the whole file is read by its link.

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::harness::HttpServer;

/// The bytes of a result that may reach a model, whatever the run wrote.
const MAX_RESULT_BYTES: usize = 20 << 10;
/// What a result has besides the content of files, with the state of every layer of the sandbox.
const MAX_STRUCTURE_BYTES: usize = 4 << 10;
const FILE_BYTES: usize = 1_000_000;

fn write_table() -> Value {
    let command = format!("yes '1,\"2\",3' | head -c {FILE_BYTES} > $OUTPUT_DIR/table.csv");
    json!({"skill": "python-math", "command": command, "output_files": ["out/*"]})
}

#[track_caller]
fn assert_short(result: &Value) {
    let length = result.to_string().len();
    assert!(length <= MAX_RESULT_BYTES + MAX_STRUCTURE_BYTES, "{length} bytes");
    let file = &result["output_files"][0];
    assert_eq!(
        (&file["truncated"], &file["size_bytes"]),
        (&json!(true), &json!(FILE_BYTES))
    );
    assert!(file["content"].as_str().unwrap().starts_with("1,\"2\",3\n"));
    assert!(result["primary_output"].get("content").is_none(), "a second copy");
    assert!(result["enforcement"]["layers"].is_object(), "programs get every layer");
}

fn call_run(cli: &Cli, arguments: &Value, flags: &[&str]) -> Value {
    let arguments = arguments.to_string();
    let words = [&["call", "skill_run", arguments.as_str()], flags].concat();
    cli.run_args(&words).expect_code(0).json()
}

#[test]
fn of_a_call_on_the_command_line() {
    let cli = Cli::new();
    let result = call_run(&cli, &write_table(), &["--session", "s1"]);
    assert_short(&result);
    assert_eq!(result["warnings"], json!([]), "nothing is lost");
    let link = result["output_files"][0]["ref"].as_str().unwrap();
    let whole = cli.run_args(&["session", "get", "s1", link]).expect_code(0).stdout;
    assert_eq!(whole.len(), FILE_BYTES);
    cli.run("session get s1 out/table.csv --to table.csv").expect_code(0);
    assert_eq!(
        std::fs::read(cli.work_dir().join("table.csv")).unwrap().len(),
        FILE_BYTES
    );
    let again = cli.run("session get s1 out/table.csv --to table.csv").expect_code(1);
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    for path in ["../session.json", "out/none.csv", "out"] {
        assert_eq!(cli.run(&format!("session get s1 {path}")).code, Some(1), "{path}");
    }

    let raised = call_run(&cli, &write_table(), &["--inline-for-models", "8000000"]);
    assert_eq!(raised["output_files"][0]["content"].as_str().unwrap().len(), FILE_BYTES);
}

#[test]
fn of_a_call_without_session_names_what_is_lost() {
    let cli = Cli::new();
    let result = call_run(&cli, &write_table(), &[]);
    assert_short(&result);
    let warning = result["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("out/table.csv: ") && warning.contains("name a session"),
        "{warning}"
    );
    let mut saved = write_table();
    saved["save_as_artifacts"] = json!(true);
    let saved = call_run(&cli, &saved, &[]);
    assert_eq!(saved["warnings"], json!([]), "the artifact is the whole file");
    let link = saved["output_files"][0]["ref"].as_str().unwrap();
    let whole = cli.run_args(&["artifacts", "get", link]).expect_code(0).stdout;
    assert_eq!(whole.len(), FILE_BYTES);
}

#[test]
fn of_a_call_over_http() {
    let (server, _) = HttpServer::start(&[], &[]);
    let post = |path: &str, body: Value| server.request_json("", "POST", path, Some(&body));
    post("/v1/sessions", json!({"id": "s1"})).expect_status(201);
    let result = post("/v1/sessions/s1/tools/skill_run", write_table()).expect_status(200);
    assert_short(&result);
    let link = result["output_files"][0]["url"].as_str().unwrap();
    let whole = server.request_json("", "GET", link, None);
    assert_eq!((whole.status, whole.body.len()), (200, FILE_BYTES));

    let full = post("/v1/sessions/s1/tools/skill_run?answer=full", write_table()).expect_status(200);
    assert_short(&full["result"]);
    let text = full["text"].as_str().unwrap();
    assert!(text.len() <= MAX_RESULT_BYTES, "{} bytes reach the model", text.len());
    let report: Value = serde_json::from_str(text).unwrap();
    assert!(report["enforcement"].is_string(), "one line: {}", report["enforcement"]);
    let program = post("/v1/runs?wait=60", write_table()).expect_status(200);
    let content = &program["output_files"][0]["content"];
    assert_eq!(
        content.as_str().unwrap().len(),
        FILE_BYTES,
        "a run for a program is whole"
    );
}
