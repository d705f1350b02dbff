//! The policy for `allowed-tools` in a session.

use std::collections::BTreeSet;

use serde_json::json;
use skillbox_loader::{Dialect, PolicyKind};
use skillbox_model::ErrorCode;

use crate::library::{Host, Library, settings};

/// Skills that declare one tool each, one that declares a pattern, and one that declares nothing.
fn library() -> Library {
    let library = Library::new();
    library.skill("alpha", "description: d\nallowed-tools: tool_x", "");
    library.skill("beta", "description: d\nallowed-tools: [tool_y, tool_x]", "");
    library.skill("git", "description: d\nallowed-tools: Bash(git:*)", "");
    library.skill("open", "description: d", "");
    library.skill("empty", "description: d\nallowed-tools: []", "");
    library
}

fn host(policy: PolicyKind, loaded: &[&str]) -> Host {
    let host = library().host_with(settings(Dialect::Deepagents, |settings| settings.policy = policy));
    for skill in loaded {
        host.ok("load_skill", json!({"skill_name": skill}));
    }
    host
}

#[test]
fn allowed_tools_recommend_mode_passthrough() {
    let host = host(PolicyKind::Recommend, &["alpha"]);
    for tool in ["tool_x", "tool_y", "anything"] {
        assert!(host.passes(tool, json!({})), "{tool}");
    }
}

#[test]
fn allowed_tools_restrict_mode_allows_listed() {
    assert!(host(PolicyKind::Restrict, &["alpha"]).passes("tool_x", json!({})));
    let git = host(PolicyKind::Restrict, &["git"]);
    assert!(git.passes("Bash", json!({"command": "git status"})));
    assert!(git.passes(
        "skill_run",
        json!({"skill": "git", "command": "git status && git diff"})
    ));
}

#[test]
fn allowed_tools_restrict_mode_blocks_unlisted() {
    let host = host(PolicyKind::Restrict, &["alpha", "beta"]);
    let blocked = host
        .session
        .wrap_tool_call(&host.agent, "execute", &json!({}))
        .unwrap_err();
    let body = blocked.to_error_body(Dialect::Deepagents);
    assert_eq!(body.code, ErrorCode::ToolNotAllowed);
    assert_eq!(
        body.message,
        "Tool 'execute' is not in the allowed-tools list for the currently loaded skills. Allowed tools: tool_x, tool_y. \
         If you believe this tool is necessary, explain your reasoning."
    );
}

#[test]
fn allowed_tools_whitelist_always_allowed() {
    let host = host(PolicyKind::Restrict, &["alpha"]);
    for tool in ["load_skill", "write_todos", "read_file", "ls"] {
        assert!(host.passes(tool, json!({})), "{tool}");
    }
    assert!(
        !host.passes("write_file", json!({})),
        "control: another tool is blocked"
    );
}

#[test]
fn allowed_tools_custom_whitelist() {
    let host_with_always_allowed = |tools: &[&str]| {
        let tools: BTreeSet<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let host = library().host_with(settings(Dialect::Deepagents, |settings| {
            settings.policy = PolicyKind::Restrict;
            settings.always_allowed = tools;
        }));
        host.ok("load_skill", json!({"skill_name": "alpha"}));
        host
    };
    let host = host_with_always_allowed(&["grep"]);
    assert!(host.passes("grep", json!({})));
    assert!(!host.passes("ls", json!({})), "a given set replaces the default");
    let host = host_with_always_allowed(&[]);
    assert!(
        !host.passes("ls", json!({})) && !host.passes("load_skill", json!({})),
        "an empty set replaces the default too"
    );
    assert_eq!(
        host.refused("load_skill", json!({"skill_name": "beta"})).code,
        ErrorCode::ToolNotAllowed
    );
}

#[test]
fn allowed_tools_no_loaded_skills_passthrough() {
    for policy in [PolicyKind::Restrict, PolicyKind::Strict] {
        assert!(host(policy, &[]).passes("anything", json!({})), "{policy:?}");
    }
}

#[test]
fn allowed_tools_no_restrictions_defined_passthrough() {
    for loaded in [
        &["open"][..],
        &["empty"],
        &["open", "empty"],
        &["alpha", "open"],
        &["alpha", "empty"],
    ] {
        assert!(
            host(PolicyKind::Restrict, loaded).passes("anything", json!({})),
            "{loaded:?}"
        );
        assert!(
            !host(PolicyKind::Strict, loaded).passes("anything", json!({})),
            "{loaded:?}"
        );
    }
}

#[test]
fn allowed_tools_multi_skill_union() {
    let host = host(PolicyKind::Restrict, &["alpha"]);
    assert!(!host.passes("tool_y", json!({})));
    host.ok("load_skill", json!({"skill_name": "beta"}));
    assert!(host.passes("tool_x", json!({})) && host.passes("tool_y", json!({})));
    assert!(!host.passes("tool_z", json!({})));
}

/// The same sessions under both policies.
#[test]
fn restrict_and_strict_side_by_side() {
    // Loaded skills, tool, and whether restrict and strict allow it.
    let table: &[(&[&str], &str, bool, bool)] = &[
        (&[], "tool_z", true, true),
        (&["alpha"], "tool_x", true, true),
        (&["alpha"], "tool_z", false, false),
        (&["open"], "tool_z", true, false),
        (&["alpha", "open"], "tool_x", true, true),
        (&["alpha", "open"], "tool_z", true, false),
        (&["open"], "skill_run", true, false),
        (&["open"], "skill_exec", true, false),
        (&["open"], "skill_load", true, true),
        (&["open"], "read_skill", true, true),
        (&["alpha"], "skill_search", true, true),
        (&["alpha"], "disable_skill", false, false),
    ];
    for (loaded, tool, restrict, strict) in table {
        for (policy, expected) in [(PolicyKind::Restrict, restrict), (PolicyKind::Strict, strict)] {
            assert_eq!(
                host(policy, loaded).passes(tool, json!({})),
                *expected,
                "{policy:?} {loaded:?} {tool}"
            );
        }
    }
}

#[test]
fn the_policy_applies_to_our_own_tools() {
    let library = library();
    let host = library.host_with(settings(Dialect::Skillbox, |settings| {
        settings.policy = PolicyKind::Strict
    }));
    host.ok("skill_load", json!({"skill": "git"}));
    let run = |command: &str| {
        let arguments = json!({"skill": "git", "command": command});
        host.session
            .call(&host.catalog, &host.agent, Default::default(), "skill_run", &arguments)
    };
    assert!(matches!(run("git status"), Ok(skillbox_loader::ToolCallReply::Run(_))));
    let error = run("git status; curl x").unwrap_err().to_error_body(Dialect::Skillbox);
    assert_eq!(error.code, ErrorCode::ToolNotAllowed);
    assert!(
        error.message.contains("no pattern allows this use of \"curl\""),
        "{}",
        error.message
    );
    assert!(
        error.message.contains("allowed tools: Bash(git:*)"),
        "{}",
        error.message
    );
}

#[test]
fn a_disabled_skill_grants_nothing() {
    let host = library().host_with(settings(Dialect::Skillbox, |settings| {
        settings.policy = PolicyKind::Strict
    }));
    host.ok("skill_load", json!({"skill": "alpha"}));
    host.ok("skill_load", json!({"skill": "beta"}));
    host.ok("skill_disable", json!({"skill": "beta"}));
    assert!(host.passes("tool_x", json!({})) && !host.passes("tool_y", json!({})));
}
