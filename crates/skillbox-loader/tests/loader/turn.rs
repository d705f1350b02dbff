//! The start of a turn, and changes on disk.

use serde_json::json;
use skillbox_loader::{Dialect, Settings, StateOperation, render_state};

use crate::library::{Host, Library};

#[test]
fn before_agent_initializes_new_state() {
    let library = Library::sample();
    let host = Host::before_first_turn(library.catalog(), Settings::new(Dialect::Deepagents));
    assert!(render_state(Dialect::Deepagents, &host.state(), &host.agent).is_empty());
    let turn = host.start_turn().unwrap();
    let keys = render_state(Dialect::Deepagents, &host.state(), &host.agent);
    assert_eq!(keys["skills_loaded"], json!([]));
    assert_eq!(keys["skill_resources"], json!({}));
    let pdf = &keys["skills_metadata"][1];
    assert_eq!(pdf["name"], "pdf");
    assert_eq!(pdf["path"], json!(library.path().join("pdf/SKILL.md")));
    assert_eq!(pdf["license"], "MIT");
    assert_eq!(pdf["compatibility"], json!(null));
    assert_eq!(pdf["metadata"], json!({}));
    assert_eq!(pdf["allowed_tools"], json!(["Bash(pdftotext:*)", "Read"]));
    assert!(
        matches!(&turn.delta.operations[..], [StateOperation::UpdateSkills { changed, removed }] if changed.len() == 2 && removed.is_empty())
    );
}

#[test]
fn before_agent_idempotent() {
    let host = Library::sample().host(Dialect::Deepagents);
    host.ok("load_skill", json!({"skill_name": "pdf"}));
    let before = host.state();
    assert_eq!(host.start_turn(), None);
    assert_eq!(host.state(), before);
}

/// An empty catalog is recorded like any other.
#[test]
fn an_empty_catalog_is_recorded_once() {
    let host = Host::before_first_turn(Library::new().catalog(), Settings::new(Dialect::Deepagents));
    assert!(host.start_turn().is_some());
    assert_eq!(host.start_turn(), None);
    assert_eq!(host.state().snapshot().unwrap().skills().len(), 0);
}

#[test]
fn changes_on_disk_take_effect_in_the_next_turn() {
    let library = Library::sample();
    let mut host = library.host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "pdf"}));
    host.ok("skill_load", json!({"skill": "csv-report"}));
    let before = host.prompt();
    library.skill("pdf", "description: Another text.", "# New body\n");
    library.skill("new", "description: Just made.", "");
    library.file("pdf/scripts/third.py", "");
    std::fs::remove_dir_all(library.path().join("csv-report")).unwrap();
    assert_eq!(host.prompt(), before, "the prompt does not change within a turn");
    let turn = host.next_turn().unwrap();
    let after = host.prompt();
    assert!(
        after.contains("- pdf [Loaded]: Another text.") && after.contains("# New body"),
        "{after}"
    );
    assert!(after.contains("- new: Just made."), "{after}");
    assert!(!after.contains("csv-report") && !after.contains("# CSV"), "{after}");
    assert_eq!(host.loaded(), ["pdf"]);
    let scripts = host
        .state()
        .resources(&"pdf".to_owned().try_into().unwrap())
        .unwrap()
        .len();
    assert_eq!(scripts, 4);
    let names: Vec<_> = turn
        .delta
        .operations
        .iter()
        .map(|operation| serde_json::to_value(operation).unwrap()["op"].clone())
        .collect();
    assert_eq!(names, ["skills", "resources"]);
    assert_eq!(host.next_turn(), None);
}

#[test]
fn a_session_resumes_from_a_stored_state() {
    let library = Library::sample();
    let host = library.host(Dialect::Skillbox);
    host.ok(
        "skill_load",
        json!({"skill": "pdf", "docs": ["references/forms.md"], "arguments": "a b"}),
    );
    host.ok("skill_disable", json!({"skill": "csv-report"}));
    let stored = serde_json::to_string(&host.state()).unwrap();
    let mut resumed = Host::before_first_turn(library.catalog(), Settings::new(Dialect::Skillbox));
    resumed.session = skillbox_loader::Session::resume(
        host.session.settings().clone(),
        std::sync::Arc::default(),
        serde_json::from_str(&stored).unwrap(),
    );
    assert_eq!(resumed.state(), host.state());
    assert_eq!(resumed.start_turn(), None);
    assert_eq!(resumed.prompt(), host.prompt());
}

/// A store may omit the snapshot, because every start discovers the skills again.
#[test]
fn a_session_resumes_from_a_state_without_snapshot() {
    let library = Library::sample();
    let host = library.host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "pdf"}));
    host.ok("skill_load", json!({"skill": "csv-report"}));
    let reduced = host.state().without_snapshot();
    assert!(serde_json::to_string(&reduced).unwrap().len() < 1000);
    std::fs::remove_dir_all(library.path().join("csv-report")).unwrap();
    let mut resumed = library.host(Dialect::Skillbox);
    resumed.session =
        skillbox_loader::Session::resume(host.session.settings().clone(), std::sync::Arc::default(), reduced);
    assert!(resumed.session.refresh(&resumed.catalog).is_some());
    assert_eq!(resumed.loaded(), ["pdf"]);
    assert!(resumed.prompt().contains("- pdf [Loaded]"));
}

#[test]
fn a_host_without_turns_refreshes_explicitly() {
    use skillbox_loader::LoadMode;
    let library = Library::sample();
    let mut host = library.host_with(crate::library::settings(Dialect::Skillbox, |settings| {
        settings.load_mode = Some(LoadMode::Turn);
    }));
    host.ok("skill_load", json!({"skill": "pdf"}));
    library.skill("pdf", "description: Edited.", "edited body\n");
    host.catalog = library.catalog();
    let delta = host.session.refresh(&host.catalog).unwrap();
    assert_eq!(delta.operations.len(), 1);
    assert_eq!(host.loaded(), ["pdf"], "no turn has started");
    let prompt = host.prompt();
    assert!(
        prompt.contains("pdf [Loaded]: Edited.") && prompt.contains("edited body"),
        "{prompt}"
    );
    assert_eq!(host.session.refresh(&host.catalog), None);
}
