//! A runtime as in a server, with skills to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, ensure};
use skillbox_executor::{CancelToken, EventSink, Executor, Launcher, LocalExecutor, start_spawner};
use skillbox_model::{OutputSpec, RunReport, RunRequest, SessionId};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::Profiles;

/// When sandboxes are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxMode {
    /// Before the run, as in a server: the run takes a parked sandbox.
    Parked,
    /// By the run itself.
    OnDemand,
}

/// A runtime and the temporary directory of its skills and state.
pub(crate) struct BenchRuntime {
    runtime: Runtime,
    directory: tempfile::TempDir,
}

/// The parameters of one run.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunSpec<'a> {
    pub command: &'a str,
    /// The name of the skill; `small` by default.
    pub skill: Option<&'a str>,
    /// The output files that are collected.
    pub output_globs: &'a [&'a str],
    pub session: Option<&'a str>,
}

impl BenchRuntime {
    pub(crate) fn new(mode: SandboxMode) -> anyhow::Result<Self> {
        Self::with_settings(mode, |_| {})
    }

    /// A runtime with other settings than the defaults.
    pub(crate) fn with_settings(
        mode: SandboxMode,
        configure: impl FnOnce(&mut RuntimeSettings),
    ) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir()?;
        write_skill(directory.path(), "small", 3)?;
        write_skill(directory.path(), "large", 1_000)?;
        fs::write(directory.path().join("skills/small/scripts/fib.py"), FIBONACCI_SCRIPT)?;
        let spawner = start_spawner(&std::env::current_exe()?).context("cannot start the spawner")?;
        if mode == SandboxMode::OnDemand {
            spawner.set_max_parked(0)?;
        }
        let profiles = Profiles::shipped();
        let launcher = Launcher::new(spawner, profiles.iter())?;
        let source = Source::Directory {
            path: directory.path().join("skills"),
            scope: Scope::Project,
        };
        let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
        let mut settings = RuntimeSettings {
            watch_skills: true,
            ..RuntimeSettings::with_state_dir(directory.path().join("state"))
        };
        configure(&mut settings);
        let local = LocalExecutor::new(launcher, None).with_cleanup_worker()?;
        Ok(Self {
            runtime: Runtime::new(repository, profiles, vec![Executor::Local(Box::new(local))], settings),
            directory,
        })
    }

    /// The runtime itself.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The directory of skills and state.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command with the skill `small`.
    pub(crate) fn run(&self, command: &str) -> anyhow::Result<()> {
        let spec = RunSpec {
            command,
            ..RunSpec::default()
        };
        self.run_spec(spec).map(drop)
    }

    /// Runs a command and returns the report.
    pub(crate) fn run_spec(&self, spec: RunSpec<'_>) -> anyhow::Result<RunReport> {
        self.run_with_events(spec, EventSink::silent())
    }

    /// Runs a command, sends its events to `events`, and returns the report.
    pub(crate) fn run_with_events(&self, spec: RunSpec<'_>, events: EventSink<'_>) -> anyhow::Result<RunReport> {
        let request = RunRequest {
            skill: spec.skill.unwrap_or("small").to_owned(),
            command: Some(spec.command.to_owned()),
            outputs: (!spec.output_globs.is_empty()).then(|| OutputSpec {
                globs: spec.output_globs.iter().map(|glob| (*glob).to_owned()).collect(),
                inline: false,
                max_total_bytes: 1 << 30,
                ..OutputSpec::default()
            }),
            ..RunRequest::default()
        };
        let context = RunContext {
            session: spec.session.map(SessionId::parse).transpose()?,
            events,
            cancel: CancelToken::new()?,
            export: None,
            origin: Default::default(),
            keep_files: false,
        };
        let report = self.runtime.run(&request, context)?;
        ensure!(
            report.exit_code == Some(0),
            "{} failed: {}",
            spec.command,
            serde_json::to_string(&report)?
        );
        Ok(report)
    }

    /// The path of the Python script `fib.py` on the host.
    pub(crate) fn fibonacci_script(&self) -> PathBuf {
        self.directory.path().join("skills/small/scripts/fib.py")
    }

    /// Runs `true` with `skillbox run` in a new process.
    #[expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]
    pub(crate) fn run_cli(&self, program: &Path) -> anyhow::Result<()> {
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

/// Prints Fibonacci numbers. This takes little time compared with the start of the interpreter.
const FIBONACCI_SCRIPT: &str =
    "import sys\na, b = 0, 1\nfor _ in range(int(sys.argv[1])):\n    print(a)\n    a, b = b, a + b\n";

fn write_skill(directory: &Path, name: &str, files: usize) -> anyhow::Result<()> {
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
