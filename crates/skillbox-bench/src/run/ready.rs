//! A runtime with skills to run, as a server would have it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, ensure};
use skillbox_executor::{Cancel, EventSink, Executor, Launcher, LocalExecutor};
use skillbox_model::{ExecutorKind, OutputSpec, RunReport, RunRequest};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{
    AgentOptions, AgentSession, DEFAULT_SESSION_WAIT, Dialect, HostDirectories, RunContext, Runtime, RuntimeSettings,
};
use skillbox_sandbox::{Profiles, Spawner};

/// A runtime, and where its skills and state lie.
pub(crate) struct Ready {
    runtime: Arc<Runtime>,
    directory: tempfile::TempDir,
}

impl Ready {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir()?;
        make_skill(directory.path(), "small", 3)?;
        make_skill(directory.path(), "large", 1_000)?;
        let spawner = Spawner::start(&std::env::current_exe()?).context("the spawner did not start")?;
        let profiles = Profiles::shipped();
        let launcher = Launcher::new(spawner, profiles.iter())?;
        let source = Source::Directory {
            path: directory.path().join("skills"),
            scope: Scope::Project,
        };
        let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
        let settings = RuntimeSettings {
            state_dir: directory.path().join("state"),
            default_profile: "default".to_owned(),
            allowed_profiles: None,
            broken_profiles: Default::default(),
            default_executor: ExecutorKind::Local,
            host_directories: HostDirectories::default(),
            host_environment: Default::default(),
            session_wait: DEFAULT_SESSION_WAIT,
            watch_skills: true,
        };
        let local = LocalExecutor::new(launcher, None);
        Ok(Self {
            runtime: Runtime::new(repository, profiles, vec![Executor::Local(Box::new(local))], settings).into(),
            directory,
        })
    }

    /// Where skills and state lie.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// An agent's session with a workspace that stays, as a client of a server has it.
    pub(crate) fn session(&self) -> anyhow::Result<AgentSession> {
        let options = AgentOptions::new(Dialect::Skillbox).stored_as("measured".to_owned().try_into()?);
        Ok(AgentSession::open(self.runtime.clone(), options)?)
    }

    /// One run of the small skill.
    pub(crate) fn run(&self, command: &str) -> anyhow::Result<()> {
        self.report("small", command, &[]).map(drop)
    }

    /// One run of the skill with a thousand files.
    pub(crate) fn run_large_skill(&self, command: &str) -> anyhow::Result<()> {
        self.report("large", command, &[]).map(drop)
    }

    /// One run of the small skill that somebody listens to.
    pub(crate) fn listened(&self, command: &str, events: EventSink<'_>) -> anyhow::Result<()> {
        self.run_with("small", command, &[], events).map(drop)
    }

    /// One run with its report, files matching `globs` collected.
    pub(crate) fn report(&self, skill: &str, command: &str, globs: &[&str]) -> anyhow::Result<RunReport> {
        self.run_with(skill, command, globs, EventSink::silent())
    }

    fn run_with(&self, skill: &str, command: &str, globs: &[&str], events: EventSink<'_>) -> anyhow::Result<RunReport> {
        let request = RunRequest {
            skill: skill.to_owned(),
            command: Some(command.to_owned()),
            outputs: (!globs.is_empty()).then(|| OutputSpec {
                globs: globs.iter().map(|glob| (*glob).to_owned()).collect(),
                inline: false,
                max_total_bytes: 1 << 30,
                ..OutputSpec::default()
            }),
            ..RunRequest::default()
        };
        let context = RunContext {
            session: None,
            events,
            cancel: Cancel::new()?,
            export: None,
        };
        let report = self.runtime.run(&request, context)?;
        ensure!(
            report.exit_code == Some(0),
            "{command} failed: {}",
            serde_json::to_string(&report)?
        );
        Ok(report)
    }

    /// The whole program, once.
    #[expect(clippy::disallowed_methods, reason = "a measuring program starts things")]
    pub(crate) fn one_shot(&self, program: &Path) -> anyhow::Result<()> {
        let output = Command::new(program)
            .arg("--skills")
            .arg(self.directory.path().join("skills/small"))
            .arg("--state-dir")
            .arg(self.directory.path().join("state"))
            .args(["run", "small", "--json", "--", "true"])
            .stdin(Stdio::null())
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

fn make_skill(directory: &Path, name: &str, files: usize) -> anyhow::Result<()> {
    let skill = directory.join("skills").join(name);
    fs::create_dir_all(skill.join("scripts"))?;
    fs::write(
        skill.join("SKILL.md"),
        format!("---\nname: {name}\ndescription: For measuring.\n---\n\n# {name}\n"),
    )?;
    for index in 0..files {
        fs::write(
            skill.join(format!("scripts/{index:04}.py")),
            format!("print({index})\n"),
        )?;
    }
    Ok(())
}
