//! Loading, and every reason to refuse it.

use std::fs;

use serde_json::{Value, json};
use skillbox_loader::{AtLimit, Dialect, render_state_changes};
use skillbox_model::ErrorCode;

use crate::library::{Host, Library, settings};

fn load(host: &Host, skill: &str) -> Value {
    host.ok("load_skill", json!({"skill_name": skill})).result
}

#[test]
fn load_skill_returns_command_with_content() {
    let library = Library::sample();
    let host = library.host(Dialect::Deepagents);
    let outcome = host.ok("load_skill", json!({"skill_name": "pdf"}));
    let file = fs::read_to_string(library.path().join("pdf/SKILL.md")).unwrap();
    let pdf = library.path().join("pdf");
    let expected = format!(
        "{file}\n\n\n---\n**Skill Resources:**\n\n- [script] `{0}/scripts/extract.py`\n- [script] `{0}/scripts/merge.py`\n\
         - [reference] `{0}/references/forms.md`",
        pdf.display()
    );
    assert_eq!(outcome.text, expected);
    assert_eq!(outcome.result["content"], expected);
    assert_eq!(outcome.result["state_delta"]["skills_loaded"], json!(["pdf"]));
    assert!(!outcome.delta.is_empty());
}

#[test]
fn load_skill_updates_skills_loaded() {
    let host = Library::sample().host(Dialect::Deepagents);
    let before = host.state();
    load(&host, "pdf");
    load(&host, "csv-report");
    let keys = render_state_changes(Dialect::Deepagents, &before, &host.state(), &host.agent);
    assert_eq!(keys["skills_loaded"], json!(["pdf", "csv-report"]));
    assert!(!keys.contains_key("skills_metadata"));
}

#[test]
fn load_skill_updates_skill_resources() {
    let host = Library::sample().host(Dialect::Deepagents);
    let before = host.state();
    load(&host, "pdf");
    let keys = render_state_changes(Dialect::Deepagents, &before, &host.state(), &host.agent);
    let resources = keys["skill_resources"].as_object().unwrap();
    assert_eq!(resources.keys().collect::<Vec<_>>(), ["pdf"]);
    assert_eq!(resources["pdf"].as_array().unwrap().len(), 3);
}

#[test]
fn load_skill_not_found_returns_error() {
    let host = Library::sample().host(Dialect::Deepagents);
    let error = host.refused("load_skill", json!({"skill_name": "nope"}));
    assert_eq!(error.code, ErrorCode::UnknownSkill);
    assert_eq!(
        error.message,
        "Error: Skill 'nope' not found. Available skills: csv-report, pdf"
    );
    let empty = Library::new().host(Dialect::Deepagents);
    let error = empty.refused("load_skill", json!({"skill_name": "nope"}));
    assert_eq!(error.message, "Error: Skill 'nope' not found. Available skills: ");
}

#[test]
fn load_skill_already_loaded_returns_message() {
    let library = Library::sample();
    let host = library.host(Dialect::Deepagents);
    load(&host, "pdf");
    fs::remove_file(library.path().join("pdf/SKILL.md")).unwrap();
    let outcome = host.ok("load_skill", json!({"skill_name": "pdf"}));
    assert_eq!(
        outcome.text,
        "Skill 'pdf' is already loaded. Its instructions are already active."
    );
    assert!(outcome.delta.is_empty());
    assert_eq!(outcome.result["state_delta"], json!({}));
    assert_eq!(host.loaded(), ["pdf"]);
}

#[test]
fn load_skill_file_read_error() {
    let library = Library::sample();
    library.skill("binary", "description: d", "x");
    let host = library.host(Dialect::Deepagents);
    let skill_md = library.path().join("pdf/SKILL.md");
    fs::remove_file(&skill_md).unwrap();
    let error = host.refused("load_skill", json!({"skill_name": "pdf"}));
    assert_eq!(error.code, ErrorCode::SkillUnreadable);
    let expected = format!("Error: Failed to read skill file at {}: ", skill_md.display());
    assert!(error.message.starts_with(&expected), "{}", error.message);
    library.file("binary/SKILL.md", b"---\nname: binary\n---\n\xff");
    let error = host.refused("load_skill", json!({"skill_name": "binary"}));
    assert!(
        error.message.starts_with("Error: Failed to decode skill file: "),
        "{}",
        error.message
    );
    fs::remove_dir_all(library.path().join("csv-report")).unwrap();
    host.refused("load_skill", json!({"skill_name": "csv-report"}));
    assert_eq!(host.loaded(), Vec::<String>::new());
}

#[test]
fn load_skill_file_size_exceeded() {
    let library = Library::sample();
    let host = library.host(Dialect::Deepagents);
    let skill_md = library.path().join("pdf/SKILL.md");
    let file = fs::OpenOptions::new().write(true).open(&skill_md).unwrap();
    file.set_len((10 << 20) + 1).unwrap();
    let error = host.refused("load_skill", json!({"skill_name": "pdf"}));
    let expected = format!(
        "Error: Skill file at {} exceeds maximum size (10485760 bytes)",
        skill_md.display()
    );
    assert_eq!(error.message, expected);
    // A file of exactly the maximum size is accepted.
    file.set_len(10 << 20).unwrap();
    host.ok("load_skill", json!({"skill_name": "pdf"}));
}

#[test]
fn load_skill_max_loaded_reached() {
    let library = Library::new();
    for n in 0..11 {
        library.skill(&format!("s{n:02}"), "description: d", "body");
    }
    let host = library.host(Dialect::Deepagents);
    for n in 0..10 {
        load(&host, &format!("s{n:02}"));
    }
    let error = host.refused("load_skill", json!({"skill_name": "s10"}));
    assert_eq!(error.code, ErrorCode::LoadLimit);
    assert_eq!(
        error.message,
        "Error: Cannot load skill 's10'. Maximum number of simultaneously loaded skills reached (10). Currently loaded: \
         s00, s01, s02, s03, s04, s05, s06, s07, s08, s09. Consider whether all loaded skills are still needed for the \
         current task."
    );
    // Order of the checks: unknown, then already loaded, then the limit.
    assert!(
        host.ok("load_skill", json!({"skill_name": "s03"}))
            .text
            .contains("already loaded")
    );
    assert_eq!(
        host.refused("load_skill", json!({"skill_name": "s99"})).code,
        ErrorCode::UnknownSkill
    );
}

#[test]
fn the_limit_can_evict_the_least_recently_used_skill() {
    let library = Library::new();
    for name in ["a", "b", "c"] {
        library
            .skill(name, "description: d", "body")
            .file(&format!("{name}/x.md"), "x");
    }
    let evicting = settings(Dialect::Skillbox, |settings| {
        settings.max_loaded = Some(2);
        settings.at_limit = AtLimit::EvictLeastRecent;
    });
    let host = library.host_with(evicting.clone());
    for name in ["a", "b"] {
        host.ok("skill_load", json!({"skill": name}));
    }
    let outcome = host.ok("skill_load", json!({"skill": "c"}));
    assert_eq!(outcome.result["evicted"], "a");
    assert_eq!(host.loaded(), ["b", "c"]);
    let host = library.host_with(evicting);
    for name in ["a", "b"] {
        host.ok("skill_load", json!({"skill": name}));
    }
    host.ok("skill_select_docs", json!({"skill": "a", "docs": ["x.md"]}));
    assert_eq!(host.ok("skill_load", json!({"skill": "c"})).result["evicted"], "b");
    assert_eq!(host.loaded(), ["a", "c"]);
}

#[test]
fn a_long_body_is_returned_completely() {
    let library = Library::new();
    let body: String = (1..=200).map(|step| format!("{step}. Do step {step}.\n")).collect();
    library.skill("long", "description: d", &body);
    for (dialect, tool, key) in [
        (Dialect::Deepagents, "load_skill", "skill_name"),
        (Dialect::Saa, "read_skill", "skill_name"),
        (Dialect::Skillbox, "skill_load", "skill"),
    ] {
        let text = library.host(dialect).ok(tool, json!({key: "long"})).text;
        assert!(text.contains(&body), "{dialect}");
    }
}

#[test]
fn an_unknown_skill_error_names_the_three_most_similar() {
    let library = Library::new();
    for name in ["pdf", "pdf-forms", "pdf-merge", "csv-report", "xlsx"] {
        library.skill(name, "description: d", "");
    }
    for dialect in [Dialect::Skillbox, Dialect::Trpc] {
        let error = library
            .host(dialect)
            .refused("skill_load", json!({"skill": "pfd-forms"}));
        assert_eq!(error.code, ErrorCode::UnknownSkill);
        assert_eq!(error.field.as_deref(), Some("skill"));
        assert!(error.message.contains("unknown skill"), "{}", error.message);
        assert!(
            error.message.ends_with("the nearest are: pdf-forms, pdf, pdf-merge"),
            "{}",
            error.message
        );
    }
}

#[test]
fn invalid_arguments_are_named() {
    let host = Library::sample().host(Dialect::Skillbox);
    let check = |tool: &str, arguments: Value, expected: &str| {
        let error = host.refused(tool, arguments);
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert!(error.message.contains(expected), "{}", error.message);
    };
    check("skill_load", json!({"skil": "pdf"}), "skil");
    check("skill_load", json!({}), "skill");
    check("skill_load", json!({"skill": 7}), "string");
    check("skill_load", json!("pdf"), "skill_load");
    check(
        "skill_select_docs",
        json!({"skill": "pdf", "mode": "append"}),
        "`add`, `replace`, `clear`",
    );
}

#[test]
fn a_skill_is_not_a_tool() {
    let host = Library::sample().host(Dialect::Skillbox);
    let error = host.refused("pdf", json!({}));
    assert_eq!(error.code, ErrorCode::UnknownTool);
    assert!(error.message.contains("is a skill, not a tool"), "{}", error.message);
    assert_eq!(error.hint.as_deref(), Some("load it: skill_load(\"pdf\")"));
    let error = host.refused("load_skill", json!({"skill_name": "pdf"}));
    assert!(
        error.message.contains("available tools: skill_list, skill_load"),
        "{}",
        error.message
    );
}

#[test]
fn loading_again_returns_the_text_again() {
    let host = Library::sample().host(Dialect::Skillbox);
    let first = host.ok("skill_load", json!({"skill": "csv-report", "docs": ["USAGE.md"]}));
    let again = host.ok("skill_load", json!({"skill": "csv-report"}));
    assert_eq!(again.result["already_loaded"], true);
    assert_eq!(again.result["instructions"], first.result["instructions"]);
    assert_eq!(again.result["docs"], first.result["docs"]);
    host.ok(
        "skill_load",
        json!({"skill": "csv-report", "docs": ["references/columns.md"]}),
    );
    let prompt = host.prompt();
    assert!(
        prompt.contains("Columns.") && !prompt.contains("Usage of the report."),
        "{prompt}"
    );
}
