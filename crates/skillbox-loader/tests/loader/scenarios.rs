//! The six integration scenarios.

use std::fs;

use serde_json::json;
use skillbox_loader::{AgentName, AgentSpec, Dialect, HistoryCompleteness, Inheritance, PolicyKind};

use crate::library::{Library, settings};

/// The host's own file tool can read the path that loading returns.
#[test]
fn i1_load_then_read_a_resource_with_the_hosts_file_tool() {
    let library = Library::sample();
    let host = library.host_with(settings(Dialect::Deepagents, |settings| {
        settings.policy = PolicyKind::Restrict
    }));
    let text = host.ok("load_skill", json!({"skill_name": "pdf"})).text;
    let line = text.lines().find(|line| line.starts_with("- [reference] `")).unwrap();
    let path = line.trim_start_matches("- [reference] `").trim_end_matches('`');
    assert!(host.passes("read_file", json!({"file_path": path})));
    assert_eq!(fs::read_to_string(path).unwrap(), "# Forms\n\nFill them.\n");
}

#[test]
fn i2_sub_agents_load_for_themselves() {
    let host = Library::sample().host(Dialect::Deepagents);
    host.ok("load_skill", json!({"skill_name": "pdf"}));
    let child = AgentName::parse("researcher").unwrap();
    let start = AgentSpec::sub_agent(AgentName::default(), child.clone(), Inheritance::Isolated);
    host.session.before_agent(&host.catalog, &start).unwrap();
    assert_eq!(host.loaded_by(&child), Vec::<String>::new());
    let arguments = json!({"skill_name": "csv-report"});
    host.session
        .call(&host.catalog, &child, Default::default(), "load_skill", &arguments)
        .unwrap();
    assert_eq!(host.loaded_by(&child), ["csv-report"]);
    assert_eq!(host.loaded(), ["pdf"]);
    let section = host
        .session
        .modify_request(&host.catalog, &child, HistoryCompleteness::Complete, &[])
        .unwrap()
        .text;
    assert!(
        section.contains("**csv-report** [Loaded]") && section.contains("- **pdf**: "),
        "{section}"
    );
    assert_eq!(
        host.session.before_agent(&host.catalog, &start),
        None,
        "a second start changes nothing"
    );
}

#[test]
fn i3_prompts_survive_summarisation() {
    let host = Library::sample().host(Dialect::Deepagents);
    host.ok("load_skill", json!({"skill_name": "pdf"}));
    let before = host.prompt();
    let after = host.prompt_after(HistoryCompleteness::Trimmed);
    assert!(
        after.starts_with(&before),
        "the section is unchanged, markers included: {after}"
    );
    assert!(after.contains("[Loaded]"));
    assert!(
        after[before.len()..].contains("# PDF"),
        "the prompt repeats the text that only a result contained: {after}"
    );
}

#[test]
fn i4_the_next_prompt_shows_what_was_loaded() {
    let host = Library::sample().host(Dialect::Deepagents);
    assert!(!host.prompt().contains("[Loaded]"));
    host.ok("load_skill", json!({"skill_name": "pdf"}));
    let prompt = host.prompt();
    assert!(
        prompt.contains("**pdf** [Loaded]") && prompt.contains("-> Resources: 1 reference, 2 scripts"),
        "{prompt}"
    );
}

#[test]
fn i5_every_loaded_skill_adds_its_allowed_tools() {
    let library = Library::new();
    library.skill("a", "description: d\nallowed-tools: one", "");
    library.skill("b", "description: d\nallowed-tools: two", "");
    library.skill("c", "description: d\nallowed-tools: three", "");
    let host = library.host_with(settings(Dialect::Deepagents, |settings| {
        settings.policy = PolicyKind::Restrict
    }));
    let tools = ["one", "two", "three", "four"];
    let passing = || tools.map(|tool| host.passes(tool, json!({})));
    assert_eq!(passing(), [true; 4]);
    for (skill, expected) in [
        ("a", [true, false, false, false]),
        ("b", [true, true, false, false]),
        ("c", [true, true, true, false]),
    ] {
        host.ok("load_skill", json!({"skill_name": skill}));
        assert_eq!(passing(), expected, "{skill}");
    }
}

#[test]
fn i6_a_skill_omitted_by_the_budget_still_loads() {
    let host = Library::sample().host_with(settings(Dialect::Deepagents, |settings| {
        settings.max_list_chars = 1;
        settings.max_loaded = Some(1);
    }));
    assert!(!host.prompt().contains("**pdf**"));
    host.ok("load_skill", json!({"skill_name": "pdf"}));
    let prompt = host.prompt();
    assert!(
        prompt.contains("**pdf** [Loaded]") && prompt.contains("(1 additional skill(s)"),
        "{prompt}"
    );
    host.refused("load_skill", json!({"skill_name": "csv-report"}));
}
