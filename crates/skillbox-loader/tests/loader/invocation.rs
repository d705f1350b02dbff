//! Arguments, manual-only skills, models, contexts and hooks.

use serde_json::json;
use skillbox_loader::{Caller, Dialect, ForkedSkills, HookEvent, HookHandler, ToolCallReply};
use skillbox_model::ErrorCode;

use crate::library::{Library, settings};

#[test]
fn arguments_are_substituted_in_the_instructions() {
    let library = Library::new();
    library.skill(
        "deploy",
        "description: d\nargument-hint: \"[app] [stage]\"",
        "Deploy $1 to $2 ($ARGUMENTS).\n",
    );
    let host = library.host(Dialect::Skillbox);
    assert!(
        host.prompt().contains("- deploy: d (arguments: [app] [stage])"),
        "{}",
        host.prompt()
    );
    let outcome = host.ok("skill_load", json!({"skill": "deploy", "arguments": "'my app' prod"}));
    assert_eq!(
        outcome.result["instructions"],
        "Deploy my app to prod ('my app' prod).\n"
    );
    assert!(host.prompt().contains("Deploy my app to prod"));
    let again = host.ok("skill_load", json!({"skill": "deploy"}));
    assert_eq!(
        again.result["instructions"], outcome.result["instructions"],
        "the arguments are kept"
    );
    let other = host.ok("skill_load", json!({"skill": "deploy", "arguments": "x y"}));
    assert_eq!(other.result["instructions"], "Deploy x to y (x y).\n");
    let without = library
        .host(Dialect::Skillbox)
        .ok("skill_load", json!({"skill": "deploy"}));
    assert_eq!(without.result["instructions"], "Deploy $1 to $2 ($ARGUMENTS).\n");
}

#[test]
fn only_the_user_loads_a_manual_only_skill() {
    let library = Library::new();
    library.skill(
        "release",
        "description: d\ndisable-model-invocation: true",
        "Release it.\n",
    );
    for (dialect, tool, key, mark) in [
        (Dialect::Skillbox, "skill_load", "skill", "- release [Manual only]: d"),
        (Dialect::Trpc, "skill_load", "skill", "- release [Manual only]: d"),
        (
            Dialect::Deepagents,
            "load_skill",
            "skill_name",
            "- **release** (Manual only): d",
        ),
        (
            Dialect::Saa,
            "read_skill",
            "skill_name",
            "- **release** (Manual only): d",
        ),
    ] {
        let host = library.host(dialect);
        assert!(host.prompt().contains(mark), "{}", host.prompt());
        assert!(!host.prompt().contains("load_skill(\"release\")"));
        assert_eq!(host.refused(tool, json!({key: "release"})).code, ErrorCode::ManualOnly);
        host.call_as(Caller::User, tool, json!({key: "release"})).unwrap();
        assert_eq!(host.loaded(), ["release"]);
        host.ok(tool, json!({key: "release"}));
    }
    let host = library.host(Dialect::Skillbox);
    let run = json!({"skill": "release", "command": "true"});
    let run = |caller| {
        host.session
            .call(&host.catalog, &host.agent, caller, "skill_run", &run)
            .map_err(|error| error.code())
    };
    assert_eq!(run(Caller::Model).unwrap_err(), ErrorCode::ManualOnly);
    run(Caller::User).unwrap();
    assert!(
        host.prompt()
            .contains("A skill marked [Manual only] is loaded by the user.")
    );
}

#[test]
fn a_host_can_require_loading_before_a_run() {
    let library = Library::sample();
    let host = library.host_with(settings(Dialect::Skillbox, |settings| settings.require_loaded = true));
    let run = json!({"skill": "pdf", "command": "true"});
    let run = || {
        host.session
            .call(&host.catalog, &host.agent, Caller::Model, "skill_run", &run)
    };
    let error = run().unwrap_err().to_error_body(Dialect::Skillbox);
    assert_eq!(error.code, ErrorCode::NotLoaded);
    assert!(error.message.contains("pdf"), "{}", error.message);
    assert_eq!(error.hint.as_deref(), Some("load it first: skill_load(\"pdf\")"));
    host.ok("skill_load", json!({"skill": "pdf"}));
    run().unwrap();
}

#[test]
fn results_report_model_context_and_visibility() {
    let library = Library::new();
    library.skill(
        "s",
        "description: d\nmodel: small\ncontext: fork\nagent: Explore\nuser-invocable: false",
        "body",
    );
    library.skill("t", "description: d\nuser-invocable: false", "body");
    let own_session = library.host(Dialect::Skillbox);
    let load = json!({"skill": "s"});
    let before = own_session.state();
    let reply = own_session.session.call(
        &own_session.catalog,
        &own_session.agent,
        Caller::Model,
        "skill_load",
        &load,
    );
    let Ok(ToolCallReply::Fork(request)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(
        (request.model.as_deref(), request.agent.as_deref()),
        (Some("small"), Some("Explore"))
    );
    assert_eq!(own_session.state(), before);
    let host = library.host_with(settings(Dialect::Skillbox, |settings| {
        settings.forked_skills = ForkedSkills::SameSession;
    }));
    let result = host.ok("skill_load", load).result;
    assert_eq!(
        (&result["model"], &result["context"], &result["agent"]),
        (&json!("small"), &json!("fork"), &json!("Explore"))
    );
    let refused = host.call_as(Caller::User, "skill_run", json!({"skill": "t", "command": "true"}));
    assert_eq!(refused.unwrap_err().code, ErrorCode::ModelOnly);
    let listed = &host.ok("skill_list", json!({})).result["skills"][0];
    assert_eq!(
        (&listed["user_invocable"], &listed["manual_only"]),
        (&json!(false), &json!(false))
    );
}

const HOOKS: &str = "description: d
hooks:
  SessionStart:
    - hooks:
        - {type: prompt, prompt: \"Mind\\n# the gap\"}
        - {type: command, command: ./setup.sh, timeout: 5}
  PreToolUse:
    - matcher: Bash
      hooks:
        - {type: command, command: ./check.sh}
        - {type: prompt, prompt: Only once., once: true}
  PostToolUse:
    - matcher: Edit|Write
      hooks:
        - {type: agent, prompt: Review it.}
  Whenever: []";

#[test]
fn hooks_fire_while_their_skill_is_loaded() {
    let library = Library::new();
    library.skill("hooked", HOOKS, "body");
    let host = library.host(Dialect::Skillbox);
    let pre = |tool: &str| {
        host.session
            .wrap_tool_call(&host.agent, tool, &json!({}))
            .unwrap()
            .hooks
    };
    assert_eq!(pre("Bash"), []);
    let result = host.ok("skill_load", json!({"skill": "hooked"})).result;
    assert_eq!(result["hooks"].as_array().unwrap().len(), 1);
    assert_eq!(
        result["hooks"][0]["handler"],
        json!({"type": "command", "command": "./setup.sh", "timeout": 5.0})
    );
    assert_eq!(result["warnings"], json!(["Whenever: unknown hook event"]));
    let prompt = host.prompt();
    assert!(
        prompt.contains("### Notes from loaded skills\n\n- hooked: Mind # the gap\n"),
        "{prompt}"
    );
    assert!(
        !host.prompt().contains("Notes from loaded skills"),
        "a note is shown once"
    );
    for tool in ["Bash", "skill_run"] {
        let command = HookHandler::Command {
            command: "./check.sh".to_owned(),
            timeout: None,
        };
        assert_eq!(
            pre(tool).into_iter().map(|hook| hook.handler).collect::<Vec<_>>(),
            [command],
            "{tool}"
        );
    }
    assert!(host.prompt().contains("- hooked: Only once."));
    pre("Bash");
    assert!(!host.prompt().contains("Only once."), "a hook with `once` fires once");
    assert_eq!(pre("Read"), []);
    let post = |tool: &str| {
        let input = json!({"tool_name": tool});
        host.session
            .fire_event(&host.agent, HookEvent::PostToolUse, &input)
            .hooks
            .len()
    };
    assert_eq!((post("Write"), post("Bash")), (1, 0));
    host.ok("skill_load", json!({"skill": "hooked"}));
    assert!(!host.prompt().contains("Mind"), "the start hook has already fired");
    host.ok("skill_unload", json!({"skill": "hooked"}));
    assert_eq!(pre("Bash"), []);
}
