//! How long a skill stays loaded, and where its text appears.

use serde_json::json;
use skillbox_loader::{AgentName, AgentSpec, Dialect, Inheritance, LoadMode};

use crate::library::{Library, settings};

#[test]
fn session_mode_keeps_a_skill_loaded() {
    let host = Library::sample().host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "pdf"}));
    host.prompt();
    host.start_turn();
    assert!(host.prompt().contains("# PDF"));
    host.ok("skill_unload", json!({"skill": "pdf"}));
    assert!(!host.prompt().contains("# PDF"));
    let again = host.ok("skill_unload", json!({"skill": "pdf"}));
    assert_eq!(
        (again.result["was_loaded"].clone(), again.delta.is_empty()),
        (json!(false), true)
    );
}

#[test]
fn turn_mode_unloads_a_skill_at_the_agents_next_turn() {
    let host = Library::sample().host_with(settings(Dialect::Skillbox, |settings| {
        settings.load_mode = Some(LoadMode::Turn)
    }));
    let child = AgentName::parse("child").unwrap();
    let start = AgentSpec::sub_agent(AgentName::default(), child.clone(), Inheritance::Isolated);
    host.session.before_agent(&host.catalog, &start).unwrap();
    let arguments = json!({"skill": "pdf"});
    host.session
        .call(&host.catalog, &child, Default::default(), "skill_load", &arguments)
        .unwrap();
    host.ok("skill_load", json!({"skill": "pdf", "docs": ["references/forms.md"]}));
    assert!(host.prompt().contains("# PDF") && host.prompt().contains("# PDF"));
    let turn = host.start_turn().unwrap();
    assert_eq!(
        serde_json::to_value(&turn.delta).unwrap(),
        json!([{"op": "unload", "skill": "pdf"}])
    );
    assert_eq!(host.loaded(), Vec::<String>::new());
    assert_eq!(host.loaded_by(&child), ["pdf"]);
    host.ok("skill_load", json!({"skill": "pdf"}));
    assert!(
        !host.prompt().contains("Fill them."),
        "its document selection is cleared too"
    );
}

#[test]
fn once_mode_shows_a_skill_in_exactly_one_prompt() {
    let host = Library::sample().host_with(settings(Dialect::Skillbox, |settings| {
        settings.load_mode = Some(LoadMode::Once)
    }));
    host.ok("skill_load", json!({"skill": "pdf"}));
    assert!(host.prompt().contains("# PDF"));
    let second = host.prompt();
    assert!(!second.contains("# PDF") && !second.contains("[Loaded]"), "{second}");
}

#[test]
fn the_host_chooses_where_the_text_appears() {
    use skillbox_loader::Delivery;
    let host = |delivery| {
        let host = Library::sample().host_with(settings(Dialect::Skillbox, |settings| {
            settings.delivery = Some(delivery)
        }));
        let outcome = host.ok("skill_load", json!({"skill": "pdf"}));
        (
            outcome.text.contains("# PDF"),
            outcome.result["instructions"].is_string(),
            host.prompt().contains("# PDF"),
        )
    };
    assert_eq!(host(Delivery::Prompt), (false, false, true));
    assert_eq!(host(Delivery::Result), (true, true, false));
    assert_eq!(host(Delivery::Both), (true, true, true));
}
