//! trpc-agent-go: overview, load, documents, run and file, for an MCP client that reads only the text of results.

use serde_json::{Value, json};

use super::mcp_text_client::McpTextClient;
use super::skill_dir::SkillDir;

fn demo_skill() -> SkillDir {
    let skills = SkillDir::new();
    skills
        .write(
            "demo-skill",
            "description: Builds a greeting.",
            "# Demo\n\nRun scripts/build.sh and collect out/greeting.txt.\n",
        )
        .write_file("demo-skill/USAGE.md", "Give the name as the first argument.\n")
        .write_file("demo-skill/notes/history.txt", "Nothing happened yet.\n")
        .write_file(
            "demo-skill/scripts/build.sh",
            "echo \"Hello, $1\" > \"$OUTPUT_DIR/greeting.txt\"\necho built\n",
        );
    skills
}

/// Walks from the overview to the file. Every step uses only what earlier texts said.
fn walk(dialect: &str) {
    let skills = demo_skill();
    let mut client = McpTextClient::connect(&skills.skills(), &skills.state(), &["--dialect", dialect]);
    assert!(
        client.instructions.contains("- demo-skill: Builds a greeting."),
        "{}",
        client.instructions
    );
    assert!(
        !client.instructions.contains("scripts/build.sh"),
        "the overview has no instructions"
    );

    let loaded = client.call_ok("skill_load", json!({"skill": "demo-skill"}));
    assert!(
        loaded.contains("Run scripts/build.sh and collect out/greeting.txt."),
        "{dialect}: {loaded}"
    );
    assert!(
        !loaded.contains("first argument"),
        "no document is selected yet: {loaded}"
    );

    let docs: Value = serde_json::from_str(&client.call_ok("skill_list_docs", json!({"skill": "demo-skill"}))).unwrap();
    assert_eq!(docs, json!(["USAGE.md", "notes/history.txt"]));
    let select = |mode: &str, doc: &str| json!({"skill": "demo-skill", "docs": [doc], "mode": mode});
    let selected = client.call_ok("skill_select_docs", select("replace", "USAGE.md"));
    assert!(
        selected.contains("Give the name as the first argument."),
        "{dialect}: {selected}"
    );
    assert!(
        !selected.contains("Run scripts/build.sh"),
        "the instructions are not repeated: {selected}"
    );
    let added = client.call_ok("skill_select_docs", select("add", "notes/history.txt"));
    assert!(
        added.contains("USAGE.md, notes/history.txt") && added.contains("Nothing happened yet."),
        "{added}"
    );
    assert!(
        !added.contains("first argument"),
        "an added document does not repeat the others: {added}"
    );
    let cleared = client.call_ok("skill_select_docs", json!({"skill": "demo-skill", "mode": "clear"}));
    assert_eq!(cleared.trim(), "selected documents of demo-skill: none");

    let run = json!({
        "skill": "demo-skill", "command": "bash scripts/build.sh world", "output_files": ["out/*.txt"],
    });
    let report: Value = serde_json::from_str(&client.call_ok("skill_run", run)).unwrap();
    assert_eq!(
        (&report["exit_code"], &report["stdout"]),
        (&json!(0), &json!("built\n")),
        "{report}"
    );
    let file = &report["output_files"][0];
    assert_eq!(
        (&file["name"], &file["content"]),
        (&json!("out/greeting.txt"), &json!("Hello, world\n"))
    );

    let refused = client.call_refused("skill_load", json!({"skill": "demo-skil"}));
    assert!(refused.contains("unknown skill"), "{refused}");
}

#[test]
fn seed_004_a_text_only_mcp_client_walks_from_the_overview_to_the_file() {
    walk("trpc");
}

#[test]
fn seed_004_the_walk_is_the_same_in_our_own_dialect() {
    walk("skillbox");
}

#[test]
fn seed_004_skill_load_returns_the_chosen_documents_to_a_text_only_client() {
    for dialect in ["trpc", "skillbox"] {
        let skills = demo_skill();
        let mut client = McpTextClient::connect(&skills.skills(), &skills.state(), &["--dialect", dialect]);
        let one = client.call_ok("skill_load", json!({"skill": "demo-skill", "docs": ["USAGE.md"]}));
        assert!(
            one.contains("# Demo") && one.contains("first argument"),
            "{dialect}: {one}"
        );
        assert!(!one.contains("Nothing happened yet."), "{dialect}: {one}");
        let all = client.call_ok("skill_load", json!({"skill": "demo-skill", "include_all_docs": true}));
        assert!(
            all.contains("first argument") && all.contains("Nothing happened yet."),
            "{dialect}: {all}"
        );
    }
}
