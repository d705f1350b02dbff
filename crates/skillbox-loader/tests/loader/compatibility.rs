//! Old skills, default settings, other ways to read a skill.

use std::fs;

use serde_json::json;
use skillbox_loader::{AtLimit, Dialect, LoadMode, PolicyKind, Settings};

use crate::library::Library;

/// A skill with only a name and a description works in every dialect.
#[test]
fn v1_skills_work_without_modification() {
    let library = Library::new();
    library.skill("plain", "description: A plain skill.", "# Plain\n\nDo it.\n");
    for (dialect, tool, key) in [
        (Dialect::Deepagents, "load_skill", "skill_name"),
        (Dialect::Saa, "read_skill", "skill_name"),
        (Dialect::Trpc, "skill_load", "skill"),
        (Dialect::Skillbox, "skill_load", "skill"),
    ] {
        let host = library.host(dialect);
        assert!(host.prompt().contains("plain"), "{dialect}");
        host.ok(tool, json!({key: "plain"}));
        assert_eq!(host.loaded(), ["plain"]);
        assert!(host.passes("anything", json!({})));
    }
}

#[test]
fn default_policy_is_recommend() {
    let settings = Settings::default();
    assert_eq!(settings.policy, PolicyKind::Recommend);
    assert_eq!((settings.max_list_chars, settings.load_limit()), (16_000, Some(10)));
    assert_eq!(
        (settings.at_limit, settings.load_mode()),
        (AtLimit::Refuse, LoadMode::Session)
    );
    assert_eq!(settings.dialect, Dialect::Skillbox);
}

/// Reading the file with another tool changes no state and does not prevent loading.
#[test]
fn read_file_still_works_for_skills() {
    let library = Library::sample();
    let host = library.host(Dialect::Deepagents);
    assert!(host.passes("read_file", json!({"file_path": "pdf/SKILL.md"})));
    let read = fs::read_to_string(library.path().join("pdf/SKILL.md")).unwrap();
    assert_eq!(host.loaded(), Vec::<String>::new());
    let text = host.ok("load_skill", json!({"skill_name": "pdf"})).text;
    assert!(text.starts_with(&read));
    assert_eq!(host.loaded(), ["pdf"]);
    let ours = library.host(Dialect::Skillbox);
    let piece = ours
        .ok("skill_read", json!({"skill": "pdf", "path": "SKILL.md"}))
        .result;
    assert_eq!(piece["content"], read);
    assert_eq!(ours.loaded(), Vec::<String>::new());
}
