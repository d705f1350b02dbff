//! Agents of one session: isolated, inheriting, limited to some skills.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skillbox_loader::{AgentName, AgentStart, Caller, Dialect, History, Inheritance, LoaderError, Reply, SkillFilter};

use crate::library::{Host, Library};

fn agent(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

fn call(host: &Host, agent: &AgentName, tool: &str, arguments: Value) -> Result<Reply, LoaderError> {
    host.session.call(&host.catalog, agent, Caller::Model, tool, &arguments)
}

#[test]
fn an_heir_starts_with_what_its_parent_has_loaded() {
    let host = Library::sample().host(Dialect::Skillbox);
    host.ok(
        "skill_load",
        json!({"skill": "pdf", "docs": ["references/forms.md"], "arguments": "x"}),
    );
    let heir = agent("heir");
    let start = AgentStart::below(AgentName::default(), heir.clone(), Inheritance::Inherit);
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(host.loaded_by(&heir), ["pdf"]);
    let section = host
        .session
        .modify_request(&host.catalog, &heir, History::Whole, &[])
        .unwrap()
        .text;
    assert!(section.contains("Fill them."), "{section}");
    // From then on the two are apart.
    call(&host, &heir, "skill_unload", json!({"skill": "pdf"})).unwrap();
    host.ok("skill_load", json!({"skill": "csv-report"}));
    assert_eq!(
        host.session.before_agent(&host.catalog, &start),
        None,
        "nothing is inherited twice"
    );
    assert_eq!(host.loaded_by(&heir), Vec::<String>::new());
    assert_eq!(host.loaded(), ["pdf", "csv-report"]);
}

#[test]
fn a_hidden_skill_does_not_exist_for_the_agent() {
    let host = Library::sample().host(Dialect::Skillbox);
    let child = agent("child");
    let only = SkillFilter::Only(["pdf".to_owned().try_into().unwrap()].into());
    let start = AgentStart::below(AgentName::default(), child.clone(), Inheritance::Isolated).seeing(only);
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
            matches!(&error, LoaderError::UnknownSkill { known, .. } if known == &["pdf"]),
            "{tool} {error:?}"
        );
    }
    let section = host
        .session
        .modify_request(&host.catalog, &child, History::Whole, &[])
        .unwrap()
        .text;
    assert!(
        section.contains("- pdf:") && !section.contains("csv-report"),
        "{section}"
    );
    let Ok(Reply::Done(list)) = call(&host, &child, "skill_list", json!({})) else {
        panic!()
    };
    assert_eq!(list.result["skills"].as_array().unwrap().len(), 1);
    let Ok(Reply::Done(found)) = call(&host, &child, "skill_search", json!({"query": "csv"})) else {
        panic!()
    };
    assert_eq!(found.result["hits"], json!([]));
    let names = host.session.tools(&child)[1].input_schema["properties"]["skill"]["enum"].clone();
    assert_eq!(names, json!(["pdf"]));
}

#[test]
fn an_agent_without_skills_sees_none() {
    let host = Library::sample().host(Dialect::Skillbox);
    let child = agent("bare");
    let start = AgentStart::below(AgentName::default(), child.clone(), Inheritance::Inherit)
        .seeing(SkillFilter::Only(BTreeSet::new()));
    host.ok("skill_load", json!({"skill": "pdf"}));
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(
        host.session.modify_request(&host.catalog, &child, History::Whole, &[]),
        None
    );
    assert_eq!(host.loaded_by(&child), Vec::<String>::new());
}

/// A sub-agent starts within its parent's turn, so the parent's prompt must not change under it.
#[test]
fn a_sub_agent_does_not_move_its_parents_turn() {
    let library = Library::sample();
    let mut host = library.host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "pdf"}));
    let before = host.prompt();
    library.skill("pdf", "description: Edited.", "edited");
    library.skill("late", "description: d", "");
    host.catalog = library.catalog();
    let child = agent("child");
    let start = AgentStart::below(AgentName::default(), child, Inheritance::Isolated);
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(host.prompt(), before);
    host.next_turn().unwrap();
    assert!(host.prompt().contains("Edited.") && host.prompt().contains("- late: d"));
}

#[test]
fn agents_have_sensible_names() {
    for bad in ["", "a\nb", &"x".repeat(129)] {
        assert!(AgentName::parse(bad).is_err(), "{bad:?}");
    }
    assert!(agent("main").is_main() && !agent("Главный").is_main());
}
