//! A runtime with skills to run, as a server would have it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, ensure};
use skillbox_executor::{Cancel, EventSink, Executor, Launcher, LocalExecutor, start_spawner};
use skillbox_model::{OutputSpec, RunReport, RunRequest, SessionId};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::Profiles;

/// Whether sandboxes wait for runs, made ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    /// As a server has them.
    Parked,
    /// None: each is made when it is asked for.
    OnDemand,
}

/// A runtime, and where its skills and state lie.
pub(crate) struct Ready {
    runtime: Runtime,
    directory: tempfile::TempDir,
}

/// One run to be made.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wish<'a> {
    pub command: &'a str,
    /// `small`, unless said otherwise.
    pub skill: Option<&'a str>,
    pub globs: &'a [&'a str],
    pub session: Option<&'a str>,
}

impl Ready {
    pub(crate) fn new(slots: Slots) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir()?;
        make_skill(directory.path(), "small", 3)?;
        make_skill(directory.path(), "large", 1_000)?;
        fs::write(directory.path().join("skills/small/scripts/fib.py"), FIB)?;
        let spawner = start_spawner(&std::env::current_exe()?).context("the spawner did not start")?;
        if slots == Slots::OnDemand {
            spawner.keep_slots(0)?;
        }
        let profiles = Profiles::shipped();
        let launcher = Launcher::new(spawner, profiles.iter())?;
        let source = Source::Directory {
            path: directory.path().join("skills"),
            scope: Scope::Project,
        };
        let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
        let settings = RuntimeSettings {
            watch_skills: true,
            ..RuntimeSettings::at(directory.path().join("state"))
        };
        let local = LocalExecutor::new(launcher, None).with_housekeeping()?;
        Ok(Self {
            runtime: Runtime::new(repository, profiles, vec![Executor::Local(Box::new(local))], settings),
            directory,
        })
    }

    /// Where skills and state lie.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// One run of the small skill.
    pub(crate) fn run(&self, command: &str) -> anyhow::Result<()> {
        let wish = Wish {
            command,
            ..Wish::default()
        };
        self.report(wish).map(drop)
    }

    /// One run with its report.
    pub(crate) fn report(&self, wish: Wish<'_>) -> anyhow::Result<RunReport> {
        self.listened(wish, EventSink::silent())
    }

    /// One run that somebody listens to.
    pub(crate) fn listened(&self, wish: Wish<'_>, events: EventSink<'_>) -> anyhow::Result<RunReport> {
        let request = RunRequest {
            skill: wish.skill.unwrap_or("small").to_owned(),
            command: Some(wish.command.to_owned()),
            outputs: (!wish.globs.is_empty()).then(|| OutputSpec {
                globs: wish.globs.iter().map(|glob| (*glob).to_owned()).collect(),
                inline: false,
                max_total_bytes: 1 << 30,
                ..OutputSpec::default()
            }),
            ..RunRequest::default()
        };
        let context = RunContext {
            session: wish.session.map(SessionId::parse).transpose()?,
            events,
            cancel: Cancel::new()?,
            export: None,
        };
        let report = self.runtime.run(&request, context)?;
        ensure!(
            report.exit_code == Some(0),
            "{} failed: {}",
            wish.command,
            serde_json::to_string(&report)?
        );
        Ok(report)
    }

    /// The script that runs of Python measure, on the host.
    pub(crate) fn fib(&self) -> PathBuf {
        self.directory.path().join("skills/small/scripts/fib.py")
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

/// The first numbers of Fibonacci: next to nothing beside the start of the interpreter.
const FIB: &str = "import sys\na, b = 0, 1\nfor _ in range(int(sys.argv[1])):\n    print(a)\n    a, b = b, a + b\n";

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
