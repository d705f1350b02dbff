//! An agent without a network: a scripted model reads its prompt and performs load → docs → run → answer.
//!
//! `cargo run -p skillbox-runtime --example scripted_agent [DIALECT]…` performs the same task in every dialect, or in
//! those that are named. The skills are those in `skills/`; scripts run in the sandbox.

#![expect(clippy::print_stdout, reason = "an example prints its steps")]

mod host;
mod model;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use skillbox_executor::{Executor, Launcher, LocalExecutor};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{Dialect, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner, SpawnerOptions};

use host::Host;
use model::ScriptedModel;

fn main() -> Result<(), Box<dyn Error>> {
    // The spawner is forked first, while this process is small and has a single thread.
    let spawner = Spawner::fork_this_process(SpawnerOptions::default())?;
    let state = tempfile::tempdir()?;
    let runtime = Arc::new(runtime(spawner, state.path())?);
    let named: Vec<String> = std::env::args().skip(1).collect();
    for dialect in Dialect::ALL {
        if named.is_empty() || named.iter().any(|name| name == dialect.as_str()) {
            run_task(&runtime, *dialect)?;
        }
    }
    Ok(())
}

fn run_task(runtime: &Arc<Runtime>, dialect: Dialect) -> Result<(), Box<dyn Error>> {
    println!("--- {dialect}");
    let task = Host::new(runtime.clone(), dialect)?.run_turn(&mut ScriptedModel::default())?;
    for step in &task.steps {
        let words: String = step.answer.split_whitespace().collect::<Vec<_>>().join(" ");
        println!("{} {}\n    {:.100}", step.tool, step.arguments, words);
    }
    println!(
        "answer: {}\n({} characters of prompt at the end)\n",
        task.answer,
        task.prompt.chars().count()
    );
    Ok(())
}

fn runtime(spawner: Spawner, state: &Path) -> Result<Runtime, Box<dyn Error>> {
    let profiles = Profiles::shipped();
    let executor = LocalExecutor::new(Launcher::new(spawner, profiles.iter())?, None);
    let skills = Source::Directory {
        path: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills"),
        scope: Scope::Project,
    };
    let repository = Repository::open(vec![skills], ScanOptions::default());
    Ok(Runtime::new(
        repository.into(),
        profiles,
        vec![Executor::Local(Box::new(executor))],
        RuntimeSettings::with_state_dir(state),
    ))
}
