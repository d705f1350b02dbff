//! trpc-agent-go: the keys of a loaded skill are valid for the turn.

use serde_json::{Value, json};

use crate::disclosure::{call_ok, cli_with_skills, prompt};
use crate::harness::HttpServer;

#[test]
fn seed_004_skill_load_keys_are_valid_for_the_turn() {
    let cli = cli_with_skills();
    let flags = "--dialect trpc --session s";
    let loaded = call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "pdf", "docs": ["references/forms.md"]}),
        flags,
    );
    assert_eq!(loaded["mode"], "turn");
    let keys = json!({"temp:skill:loaded:pdf": "1", "temp:skill:docs:pdf": "[\"references/forms.md\"]"});
    assert_eq!(loaded["state_delta"], keys);
    let selected = json!({"skill": "git", "include_all_docs": true});
    let selected = call_ok(&cli, "skill_select_docs", &selected, flags);
    assert_eq!(selected["state_delta"], json!({"temp:skill:docs:git": "*"}));
    let shown = prompt(&cli, flags);
    assert!(
        shown.contains("The body of pdf.") && shown.contains("All about forms."),
        "{shown}"
    );
    assert_eq!(prompt(&cli, flags), shown, "the whole turn");

    let next_turn = call_ok(&cli, "before_agent", &json!({}), flags);
    let removed = json!({"temp:skill:loaded:pdf": null, "temp:skill:docs:pdf": null, "temp:skill:docs:git": null});
    assert_eq!(next_turn["state_delta"], removed);
    assert!(!prompt(&cli, flags).contains("The body of pdf."));

    let kept = "--dialect trpc --session kept --load-mode session";
    call_ok(&cli, "skill_load", &json!({"skill": "pdf"}), kept);
    call_ok(&cli, "before_agent", &json!({}), kept);
    assert!(
        prompt(&cli, kept).contains("The body of pdf."),
        "the host can choose another mode"
    );
    let ours = "--session ours";
    assert_eq!(
        call_ok(&cli, "skill_load", &json!({"skill": "pdf"}), ours)["mode"],
        "session"
    );
}

/// The dialect of a request decides, not the one that the server was started with.
#[test]
fn seed_004_skill_load_keys_are_valid_for_the_turn_over_http() {
    let (server, _) = HttpServer::start(&[], &[]);
    let post = |path: &str, body: Value| server.request_json("", "POST", path, Some(&body));
    post("/v1/sessions", json!({"id": "s"})).expect_status(201);
    for (dialect, mode, is_removed) in [("trpc", "turn", true), ("skillbox", "session", false)] {
        let loaded = post(
            &format!("/v1/sessions/s/tools/skill_load?dialect={dialect}"),
            json!({"skill": "csv-report"}),
        )
        .expect_status(200);
        assert_eq!(loaded["mode"], mode);
        let next_turn = post(
            &format!("/v1/sessions/s/tools/before_agent?dialect={dialect}"),
            json!({}),
        )
        .expect_status(200);
        assert_eq!(next_turn["changed"], is_removed, "{dialect}: {next_turn}");
    }
}
