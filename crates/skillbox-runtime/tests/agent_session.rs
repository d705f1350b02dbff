//! Tests of agent sessions without an executor: state, locks, hooks, events.

#![expect(clippy::unwrap_used, reason = "a failing step ends the test")]

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, AgentSpec, Dialect, DynamicTools, HistoryCompleteness, HookRunner,
    HookStatus, PolicyKind, Runtime, RuntimeSettings, Settings, ToolCall, ToolError, ToolOutcome,
};
use tempfile::TempDir;

/// A host with a directory of skills and a state directory.
struct Host {
    scratch: TempDir,
    runtime: Arc<Runtime>,
}

impl Host {
    fn new(skills: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for (name, fields) in skills {
            write_skill(scratch.path(), name, fields);
        }
        let source = Source::Directory {
            path: scratch.path().join("skills"),
            scope: Scope::Project,
        };
        let repository = Repository::open(vec![source], ScanOptions::default());
        let settings = RuntimeSettings::with_state_dir(scratch.path().join("state"));
        let runtime = Runtime::new(
            repository.into(),
            skillbox_sandbox::Profiles::shipped(),
            Vec::new(),
            settings,
        );
        Self {
            scratch,
            runtime: runtime.into(),
        }
    }

    fn session(&self, options: impl Into<AgentOptions>) -> AgentSession {
        AgentSession::open(self.runtime.clone(), options.into()).unwrap()
    }

    fn stored(&self, name: &str) -> AgentSession {
        let name = name.to_owned().try_into().unwrap();
        self.session(AgentOptions::new(Dialect::Skillbox).stored_as(name))
    }
}

fn write_skill(scratch: &Path, name: &str, fields: &str) {
    let dir = scratch.join("skills").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!("---\nname: {name}\ndescription: About {name}.\n{fields}\n---\nThe body of {name}.\n");
    std::fs::write(dir.join("SKILL.md"), text).unwrap();
}

fn call(session: &AgentSession, tool: &str, arguments: Value) -> Result<ToolOutcome, ToolError> {
    session.call(&ToolCall::new(tool, arguments))
}

fn load(session: &AgentSession, skill: &str) -> Result<ToolOutcome, ToolError> {
    call(session, "skill_load", json!({"skill": skill}))
}

fn loaded(session: &AgentSession) -> Vec<String> {
    let state = session.state().unwrap();
    state
        .loaded(&AgentName::default())
        .map(|loaded| loaded.skill.to_string())
        .collect()
}

const PLAIN: [(&str, &str); 8] = [
    ("a", ""),
    ("b", ""),
    ("c", ""),
    ("d", ""),
    ("e", ""),
    ("f", ""),
    ("g", ""),
    ("h", ""),
];

/// Each thread has its own handle, like separate processes, or all threads share one.
#[test]
fn concurrent_loads_all_take_effect_within_the_limit() {
    let host = Host::new(&PLAIN);
    let count_successful_loads = |sessions: &[AgentSession]| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = sessions
                .iter()
                .cycle()
                .zip(PLAIN)
                .map(|(session, (skill, _))| scope.spawn(move || load(session, skill).is_ok()))
                .collect();
            let results = threads.into_iter().map(|thread| thread.join().unwrap());
            results.filter(|succeeded| *succeeded).count()
        })
    };
    let handles: Vec<AgentSession> = (0..8).map(|_| host.stored("many")).collect();
    assert_eq!(count_successful_loads(&handles), 8);
    let mut names = loaded(&handles[0]);
    names.sort();
    assert_eq!(names, PLAIN.map(|(name, _)| name));

    let limited = |session: Option<&str>| {
        let settings = Settings {
            max_loaded: Some(3),
            ..Settings::default()
        };
        host.session(AgentOptions {
            session: session.map(|name| name.to_owned().try_into().unwrap()),
            ..settings.into()
        })
    };
    let handles: Vec<AgentSession> = (0..8).map(|_| limited(Some("limited"))).collect();
    assert_eq!(count_successful_loads(&handles), 3);
    assert_eq!(loaded(&handles[0]).len(), 3);
    let shared = [limited(None)];
    assert_eq!(count_successful_loads(&shared), 3);
    assert_eq!(loaded(&shared[0]).len(), 3);
}

#[test]
fn a_stored_session_is_resumed_and_a_detached_one_is_not_stored() {
    let host = Host::new(&PLAIN);
    load(&host.stored("s"), "a").unwrap();
    let session = host.stored("s");
    assert_eq!(loaded(&session), ["a"]);
    let copy = session.in_memory_copy().unwrap();
    load(&copy, "b").unwrap();
    assert_eq!(
        (loaded(&copy), loaded(&session)),
        (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(loaded(&host.session(AgentOptions::new(Dialect::Skillbox))), [""; 0]);
}

#[test]
fn changes_on_disk_take_effect_at_the_next_turn() {
    let host = Host::new(&[("a", "")]);
    let session = host.session(AgentOptions::new(Dialect::Skillbox));
    let agent = AgentName::default();
    session.before_agent(&AgentSpec::main()).unwrap().unwrap();
    let before = session
        .modify_request(&agent, HistoryCompleteness::Complete)
        .unwrap()
        .unwrap()
        .text;
    write_skill(host.scratch.path(), "late", "");
    assert_eq!(
        session
            .modify_request(&agent, HistoryCompleteness::Complete)
            .unwrap()
            .unwrap()
            .text,
        before
    );
    assert_eq!(load(&session, "late").unwrap_err().code().as_str(), "unknown_skill");
    let turn = session.before_agent(&AgentSpec::main()).unwrap().unwrap();
    assert_eq!(turn.state_delta()[0]["seen"][0]["name"], "late");
    load(&session, "late").unwrap();
    assert!(session.before_agent(&AgentSpec::main()).unwrap().is_none());
}

const GUARD: &str = "hooks:
  PreToolUse:
    - matcher: skill_list_docs|Bash
      hooks:
        - {type: command, command: ./check.sh}
        - {type: prompt, prompt: Mind the docs., once: true}";

#[test]
fn a_hook_that_cannot_run_blocks_the_call_and_changes_nothing() {
    let host = Host::new(&[("guard", GUARD)]);
    let session = host.stored("s");
    load(&session, "guard").unwrap();
    let before = session.state().unwrap();
    let error = call(&session, "skill_list_docs", json!({"skill": "guard"})).unwrap_err();
    assert!(
        matches!(&error, ToolError::BlockedByHook { reason, .. } if reason.contains("executor is not configured")),
        "{error}"
    );
    let agent = AgentName::default();
    assert!(
        session
            .wrap_tool_call(&agent, "Bash", &json!({"command": "ls"}))
            .is_err()
    );
    assert_eq!(session.state().unwrap(), before);
}

#[test]
fn a_host_may_run_the_commands_of_hooks_itself() {
    let host = Host::new(&[("guard", GUARD)]);
    let mut options = AgentOptions::new(Dialect::Skillbox);
    options.hook_runner = HookRunner::Host;
    let session = host.session(options);
    load(&session, "guard").unwrap();
    let outcome = call(&session, "skill_list_docs", json!({"skill": "guard"})).unwrap();
    assert_eq!(outcome.result, json!([]), "a list cannot contain hooks");
    assert!(
        matches!(outcome.hooks.as_slice(), [hook] if hook.status == HookStatus::ForHost),
        "{:?}",
        outcome.hooks
    );
    let agent = AgentName::default();
    let section = session
        .modify_request(&agent, HistoryCompleteness::Complete)
        .unwrap()
        .unwrap();
    assert!(section.text.contains("- guard: Mind the docs."), "{}", section.text);
}

/// The prompt text of a hook is part of the call, so a refused call adds none.
#[test]
fn a_refused_call_adds_no_prompt_text_of_hooks() {
    let host = Host::new(&[(
        "speaker",
        "hooks:\n  PreToolUse:\n    - {matcher: skill_read, type: prompt, prompt: Read on.}",
    )]);
    let session = host.session(AgentOptions::new(Dialect::Skillbox));
    load(&session, "speaker").unwrap();
    let before = session.state().unwrap();
    assert!(call(&session, "skill_read", json!({"skill": "speaker", "path": "none"})).is_err());
    assert_eq!(session.state().unwrap(), before);
    call(&session, "skill_read", json!({"skill": "speaker", "path": "SKILL.md"})).unwrap();
    assert_ne!(session.state().unwrap(), before);
}

#[test]
fn host_tools_become_visible_with_the_skills_that_name_them() {
    let host = Host::new(&[("git", "allowed-tools: Bash(git:*) Fetch"), ("pdf", "")]);
    let session = host.session(AgentOptions::new(Dialect::Saa));
    let dynamic = DynamicTools {
        by_skill: BTreeMap::from([(
            "pdf".to_owned().try_into().unwrap(),
            vec!["pdf_text".to_owned(), "Bash".to_owned()],
        )]),
        unlockable: ["Bash", "Fetch", "Other"].map(str::to_owned).into(),
    };
    let always = ["ls".to_owned()];
    let visible = || session.host_tools(&dynamic, &always, &AgentName::default()).unwrap();
    assert_eq!(visible(), ["ls"]);
    assert!(call(&session, "read_skill", json!({"skill_name": "gti"})).is_err());
    assert_eq!(visible(), ["ls"], "a failed load unlocks nothing");
    call(&session, "read_skill", json!({"skill_name": "pdf"})).unwrap();
    assert_eq!(visible(), ["ls", "pdf_text", "Bash"]);
    call(&session, "read_skill", json!({"skill_name": "git"})).unwrap();
    assert_eq!(
        visible(),
        ["ls", "pdf_text", "Bash", "Fetch"],
        "no tool is listed twice"
    );
}

#[test]
fn every_call_logs_an_event_with_its_delta() {
    let host = Host::new(&[("git", "allowed-tools: Bash(git:*)")]);
    let settings = Settings {
        policy: PolicyKind::Strict,
        ..Settings::new(Dialect::Trpc)
    };
    let session = host.session(settings);
    let recorder = EventRecorder::default();
    tracing::subscriber::with_default(recorder.clone(), || {
        load(&session, "git").unwrap();
        load(&session, "gti").unwrap_err();
        call(&session, "skill_run", json!({"skill": "git", "command": "rm x"})).unwrap_err();
    });
    let events = recorder.0.lock().unwrap();
    let responses: Vec<_> = events
        .iter()
        .filter(|(name, _)| *name == "tool.response")
        .map(|(_, fields)| fields)
        .collect();
    assert_eq!(responses.len(), 3, "{events:?}");
    assert_eq!(responses[0]["tool"], "skill_load");
    assert_eq!(responses[0]["state_delta"], r#"{"temp:skill:loaded:git":"1"}"#);
    assert_eq!(responses[1]["error"], "unknown_skill");
    assert_eq!(responses[2]["error"], "tool_not_allowed");
    let has_message = |words: &str| {
        events
            .iter()
            .any(|(_, fields)| fields.get("message").is_some_and(|text| text.contains(words)))
    };
    for words in [
        "Discovered 1 skills from 1 sources",
        "Skill 'git' loaded (0 resources discovered)",
        "Tool 'skill_run' blocked by allowed-tools policy",
    ] {
        assert!(has_message(words), "{words}: {events:?}");
    }
}

/// The name and fields of one event.
type Event = (&'static str, BTreeMap<&'static str, String>);

/// Records every event.
#[derive(Clone, Default)]
struct EventRecorder(Arc<Mutex<Vec<Event>>>);

impl tracing::Subscriber for EventRecorder {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push((event.metadata().name(), fields.0));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
