//! The loop of an agent: a scripted model loads a skill, selects documents, runs a script and answers, in every dialect.

use std::path::Path;
use std::sync::Arc;

use skillbox_executor::{Executor, Launcher, LocalExecutor};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{Dialect, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner};

use crate::workspace::root;

// The test runs the code of the example.
#[path = "../../crates/skillbox-runtime/examples/scripted_agent/host.rs"]
mod host;
#[path = "../../crates/skillbox-runtime/examples/scripted_agent/model.rs"]
mod model;

use host::{FinishedTask, Host};
use model::ScriptedModel;

fn run_agent(dialect: Dialect) -> FinishedTask {
    let spawner = Spawner::start(Path::new(env!("CARGO_BIN_EXE_skillbox"))).unwrap();
    let profiles = Profiles::shipped();
    let executor = LocalExecutor::new(Launcher::new(spawner, profiles.iter()).unwrap(), None);
    let skills = Source::Directory {
        path: root().join("skills"),
        scope: Scope::Project,
    };
    let repository = Repository::open(vec![skills], ScanOptions::default());
    let state = tempfile::tempdir().unwrap();
    let settings = RuntimeSettings::with_state_dir(state.path());
    let runtime = Runtime::new(
        repository.into(),
        profiles,
        vec![Executor::Local(Box::new(executor))],
        settings,
    );
    let host = Host::new(Arc::new(runtime), dialect).unwrap();
    host.run_turn(&mut ScriptedModel::default()).unwrap()
}

/// Checks the order of the tool calls, and whether the last prompt contains the document.
#[track_caller]
fn check(dialect: Dialect, tools: &[&str], document_in_prompt: bool) {
    let task = run_agent(dialect);
    let called: Vec<&str> = task.steps.iter().map(|step| step.tool.as_str()).collect();
    assert_eq!(called, tools, "{dialect}");
    let run = task.steps.last().unwrap();
    assert!(
        run.arguments["command"].is_string() && run.answer.contains("\"ended_by\":\"exit\""),
        "{}",
        run.answer
    );
    assert_eq!(task.answer, "8 to the power of 1/3 is exactly 2.", "{dialect}");
    assert_eq!(
        task.prompt.contains("right-associative"),
        document_in_prompt,
        "{}",
        task.prompt
    );
}

#[test]
fn the_skillbox_dialect_loads_chooses_runs_and_answers() {
    check(
        Dialect::Skillbox,
        &["skill_load", "skill_list_docs", "skill_select_docs", "skill_run"],
        true,
    );
}

#[test]
fn the_trpc_dialect_loads_chooses_runs_and_answers() {
    check(
        Dialect::Trpc,
        &["skill_load", "skill_list_docs", "skill_select_docs", "skill_run"],
        true,
    );
}

#[test]
fn the_deepagents_dialect_loads_reads_runs_and_answers() {
    check(Dialect::Deepagents, &["load_skill", "read_file", "Bash"], false);
}

#[test]
fn the_saa_dialect_loads_reads_runs_and_answers() {
    check(Dialect::Saa, &["read_skill", "read_file", "Bash"], false);
}

#[test]
fn the_agentskills_dialect_reads_runs_and_answers() {
    check(Dialect::Agentskills, &["read_file", "read_file", "Bash"], false);
}
