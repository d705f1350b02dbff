//! Agents of one session: isolated, inheriting, limited to some skills.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skillbox_loader::{
    AgentName, AgentSpec, Caller, Dialect, HistoryCompleteness, Inheritance, LoaderError, SkillFilter, ToolCallReply,
};

use crate::library::{Host, Library};

fn agent(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

fn call(host: &Host, agent: &AgentName, tool: &str, arguments: Value) -> Result<ToolCallReply, LoaderError> {
    host.session.call(&host.catalog, agent, Caller::Model, tool, &arguments)
}

#[test]
fn an_inheriting_agent_starts_with_its_parents_loaded_skills() {
    let host = Library::sample().host(Dialect::Skillbox);
    host.ok(
        "skill_load",
        json!({"skill": "pdf", "docs": ["references/forms.md"], "arguments": "x"}),
    );
    let child = agent("child");
    let start = AgentSpec::sub_agent(AgentName::default(), child.clone(), Inheritance::Inherit);
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(host.loaded_by(&child), ["pdf"]);
    let section = host
        .session
        .modify_request(&host.catalog, &child, HistoryCompleteness::Complete, &[])
        .unwrap()
        .text;
    assert!(section.contains("Fill them."), "{section}");
    // From then on, the two agents load skills independently.
    call(&host, &child, "skill_unload", json!({"skill": "pdf"})).unwrap();
    host.ok("skill_load", json!({"skill": "csv-report"}));
    assert_eq!(
        host.session.before_agent(&host.catalog, &start),
        None,
        "nothing is inherited twice"
    );
    assert_eq!(host.loaded_by(&child), Vec::<String>::new());
    assert_eq!(host.loaded(), ["pdf", "csv-report"]);
}

#[test]
fn a_filtered_skill_is_unknown_to_the_agent() {
    let host = Library::sample().host(Dialect::Skillbox);
    let child = agent("child");
    let only = SkillFilter::Only(["pdf".to_owned().try_into().unwrap()].into());
    let start = AgentSpec::sub_agent(AgentName::default(), child.clone(), Inheritance::Isolated).with_filter(only);
    host.session.before_agent(&host.catalog, &start).unwrap();
    for (tool, arguments) in [
        ("skill_load", json!({"skill": "csv-report"})),
        ("skill_unload", json!({"skill": "csv-report"})),
        ("skill_list_docs", json!({"skill": "csv-report"})),
        ("skill_select_docs", json!({"skill": "csv-report"})),
        ("skill_read", json!({"skill": "csv-report", "path": "SKILL.md"})),
        ("skill_run", json!({"skill": "csv-report", "command": "true"})),
        ("skill_disable", json!({"skill": "csv-report"})),
        ("skill_enable", json!({"skill": "csv-report"})),
    ] {
        let error = call(&host, &child, tool, arguments).unwrap_err();
        assert!(
            matches!(&error, LoaderError::UnknownSkill { suggestions, .. } if suggestions == &["pdf"]),
            "{tool} {error:?}"
        );
    }
    let section = host
        .session
        .modify_request(&host.catalog, &child, HistoryCompleteness::Complete, &[])
        .unwrap()
        .text;
    assert!(
        section.contains("- pdf:") && !section.contains("csv-report"),
        "{section}"
    );
    let Ok(ToolCallReply::Done { outcome: list, .. }) = call(&host, &child, "skill_list", json!({})) else {
        panic!()
    };
    assert_eq!(list.result["skills"].as_array().unwrap().len(), 1);
    let Ok(ToolCallReply::Done { outcome: found, .. }) = call(&host, &child, "skill_search", json!({"query": "csv"}))
    else {
        panic!()
    };
    assert_eq!(found.result["hits"], json!([]));
    let names = host.session.tools(&child)[1].input_schema["properties"]["skill"]["enum"].clone();
    assert_eq!(names, json!(["pdf"]));
}

#[test]
fn an_agent_with_an_empty_filter_sees_no_skills() {
    let host = Library::sample().host(Dialect::Skillbox);
    let child = agent("bare");
    let start = AgentSpec::sub_agent(AgentName::default(), child.clone(), Inheritance::Inherit)
        .with_filter(SkillFilter::Only(BTreeSet::new()));
    host.ok("skill_load", json!({"skill": "pdf"}));
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(
        host.session
            .modify_request(&host.catalog, &child, HistoryCompleteness::Complete, &[]),
        None
    );
    assert_eq!(host.loaded_by(&child), Vec::<String>::new());
}

/// A sub-agent starts within its parent's turn, so the parent's prompt must not change.
#[test]
fn a_sub_agent_does_not_change_its_parents_prompt() {
    let library = Library::sample();
    let mut host = library.host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "pdf"}));
    let before = host.prompt();
    library.skill("pdf", "description: Edited.", "edited");
    library.skill("late", "description: d", "");
    host.catalog = library.catalog();
    let child = agent("child");
    let start = AgentSpec::sub_agent(AgentName::default(), child, Inheritance::Isolated);
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(host.prompt(), before);
    host.next_turn().unwrap();
    assert!(host.prompt().contains("Edited.") && host.prompt().contains("- late: d"));
}

#[test]
fn agent_names_are_validated() {
    for bad in ["", "a\nb", &"x".repeat(129)] {
        assert!(AgentName::parse(bad).is_err(), "{bad:?}");
    }
    assert!(agent("main").is_main() && !agent("Главный").is_main());
}
