//! The step of a run that provides its packages.

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use skillbox_environment::{
    BuildHost, Declaration, EnvironmentStore, MAX_DECLARATION_BYTES, SealedEnvironment, build_environment, detect,
};
use skillbox_executor::job::JobSpec;
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::{CancelToken, EventSink, Executor, PackageMounts};
use skillbox_model::{Digest, EnvironmentReport, ExecutorKind, Layer, RelPath, RunEvent};
use skillbox_sandbox::{Need, Profile, Profiles};

use crate::environment::{CommandScript, EnvironmentError, EnvironmentMode, command_script};
use crate::run_id::new_run_id;
use crate::session::{NewWorkspace, ScratchSession};
use crate::{RunError, Runtime};

/// The packages that a run gets.
#[derive(Debug, Default)]
pub(crate) struct ProvidedEnvironment {
    /// The environment; none if the skill declares no packages.
    pub environment: Option<SealedEnvironment>,
    /// How long its build took, if it was built now.
    pub built: Option<Duration>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

/// The directories in which programs of a sandbox are found, in the order of its `PATH`.
const PROGRAM_DIRECTORIES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// How long a run waits while another one builds the same environment: longer than a build may take.
const BUILD_WAIT: Duration = Duration::from_secs(1800);

impl ProvidedEnvironment {
    /// The part of the report.
    pub fn report(&self) -> Option<EnvironmentReport> {
        let environment = self.environment.as_ref()?;
        Some(EnvironmentReport {
            digest: environment.digest,
            kind: environment.identity.kind().to_owned(),
            packages: environment.identity.package_count() as u64,
            built_ms: self
                .built
                .map(|built| u64::try_from(built.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    /// What the sandbox mounts.
    pub fn mounts(&self) -> io::Result<Option<PackageMounts>> {
        let Some(environment) = &self.environment else {
            return Ok(None);
        };
        let node_modules = environment.node_modules();
        Ok(Some(PackageMounts {
            root: environment.tree().try_clone_to_owned()?,
            node_modules: node_modules.map(|fd| fd.try_clone_to_owned()).transpose()?,
        }))
    }
}

impl Runtime {
    /// Provides the packages that the skill declares for this run. Builds them if the host allows that.
    pub(crate) fn provide_environment(
        &self,
        spec: &JobSpec,
        (executor, profile): (&Executor, &Profile),
        snapshot: &Snapshot,
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> Result<ProvidedEnvironment, RunError> {
        let settings = &self.settings.environments;
        if settings.mode == EnvironmentMode::Off && settings.added_packages.is_empty() {
            return Ok(ProvidedEnvironment::default());
        }
        let declaration = self.declared_packages(spec.skill.as_str(), snapshot, &command_script(spec))?;
        if declaration.is_empty() {
            return Ok(ProvidedEnvironment::default());
        }
        let unsupported = match executor.kind() {
            ExecutorKind::Docker => Some("containers do not have the packages of skills yet"),
            ExecutorKind::Local if profile.need(Layer::MountNamespace) == Need::Off => {
                Some("a profile without a mount namespace does not have the packages of skills")
            }
            ExecutorKind::Local => None,
        };
        if let Some(reason) = unsupported {
            return Ok(ProvidedEnvironment {
                warnings: vec![reason.to_owned()],
                ..ProvidedEnvironment::default()
            });
        }
        let skill = spec.skill.as_str();
        if let Some(found) = self.find_environment(&declaration)? {
            return Ok(ProvidedEnvironment {
                environment: Some(found),
                ..ProvidedEnvironment::default()
            });
        }
        if self.settings.environments.mode == EnvironmentMode::Prebuilt {
            return Err(EnvironmentError::Missing {
                skill: skill.to_owned(),
                packages: first_packages(&declaration),
            }
            .into());
        }
        let (environment, built) = self.build(skill, &declaration, cancel, events)?;
        Ok(ProvidedEnvironment {
            environment: Some(environment),
            built,
            warnings: Vec::new(),
        })
    }

    /// The packages that a frozen skill declares for a command, and those that the operator adds.
    pub(super) fn declared_packages(
        &self,
        skill: &str,
        snapshot: &Snapshot,
        script: &CommandScript,
    ) -> Result<Declaration, EnvironmentError> {
        let read = |file: &str| read_file(snapshot, file);
        let path = script.path.as_deref();
        let declared = match self.settings.environments.mode {
            EnvironmentMode::Off => Declaration::default(),
            EnvironmentMode::Auto | EnvironmentMode::Prebuilt => {
                detect(&read, path, script.language).map_err(|source| EnvironmentError::Detect {
                    skill: skill.to_owned(),
                    source: Box::new(source),
                })?
            }
        };
        let added = &self.settings.environments.added_packages;
        if added.is_empty() {
            return Ok(declared);
        }
        let added =
            Declaration::of_requirements("--with", added).map_err(|error| EnvironmentError::Added(Box::new(error)))?;
        Ok(declared.and(added))
    }

    /// The store of environments.
    pub(crate) fn environment_store(&self) -> EnvironmentStore {
        EnvironmentStore::new(
            self.settings.state_dir.join("environments"),
            self.settings.environments.limits,
        )
    }

    /// The stored environment of a declaration.
    pub(super) fn find_environment(
        &self,
        declaration: &Declaration,
    ) -> Result<Option<SealedEnvironment>, EnvironmentError> {
        Ok(self.environment_store().find(&environment_key(declaration))?)
    }

    /// Builds the environment of a declaration, unless another process does so at this moment. Returns how long it took.
    pub(super) fn build(
        &self,
        skill: &str,
        declaration: &Declaration,
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> Result<(SealedEnvironment, Option<Duration>), RunError> {
        let local = self
            .executors
            .iter()
            .find(|executor| executor.kind() == ExecutorKind::Local);
        let executor = local.ok_or(EnvironmentError::NoSandbox)?;
        let profile = Profiles::for_builds().ok_or(EnvironmentError::NoSandbox)?;
        let (store, key) = (self.environment_store(), environment_key(declaration));
        events.emit(|| RunEvent::BuildingEnvironment {
            declared: declared_count(declaration),
        });
        let _lock = store
            .lock_build(&key, Instant::now() + BUILD_WAIT, cancel)
            .map_err(EnvironmentError::from)?;
        if let Some(found) = store.find(&key).map_err(EnvironmentError::from)? {
            return Ok((found, None));
        }
        let started = Instant::now();
        let run_id = new_run_id();
        let limits = profile.limits.default.clone();
        let session = ScratchSession::create(&self.scratch_sessions, &run_id)?;
        let workspace = session.session.workspace(NewWorkspace::Limited(&limits))?;
        let settings = &self.settings.environments;
        let host = BuildHost {
            executor,
            profile: &profile,
            limits,
            workspace: &workspace,
            python: &*settings.registries.python,
            node: &*settings.registries.node,
            file_hosts: &settings.file_hosts,
            run_id: &run_id,
            cancel,
        };
        let (identity, built) = build_environment(&host, declaration).map_err(|source| EnvironmentError::Build {
            skill: skill.to_owned(),
            source: Box::new(source),
        })?;
        let sealed = store
            .seal(&key, identity, built.as_fd())
            .map_err(EnvironmentError::from)?;
        executor.release_finished_sandboxes();
        Ok((sealed, Some(started.elapsed())))
    }
}

/// Reads a file of a skill; none if there is no such file.
fn read_file(snapshot: &Snapshot, file: &str) -> io::Result<Option<Vec<u8>>> {
    let Ok(path) = RelPath::parse(file) else {
        return Ok(None);
    };
    let file = match snapshot.open_file(&path) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.take(MAX_DECLARATION_BYTES).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// What an environment is looked for by: the declaration, and the interpreters of this host. An upgrade of an interpreter
/// leads to a new build.
fn environment_key(declaration: &Declaration) -> Digest {
    #[derive(Serialize)]
    struct Key {
        declaration: Digest,
        python: Option<ProgramStamp>,
        node: Option<ProgramStamp>,
    }
    let key = Key {
        declaration: declaration.digest(),
        python: declaration.python.as_ref().and_then(|_| program_stamp("python3")),
        node: declaration.node.as_ref().and_then(|_| program_stamp("node")),
    };
    let json = serde_json::to_vec(&key).expect("strings and numbers serialize");
    Digest::from_sha256(Sha256::digest(json).into())
}

/// What changes when a program is replaced.
#[derive(Serialize)]
struct ProgramStamp {
    inode: u64,
    bytes: u64,
    modified_seconds: i64,
}

fn program_stamp(name: &str) -> Option<ProgramStamp> {
    let mut paths = PROGRAM_DIRECTORIES
        .iter()
        .map(|directory| format!("{directory}/{name}"));
    let metadata = paths.find_map(|path| fs::metadata(path).ok())?;
    Some(ProgramStamp {
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified_seconds: metadata.mtime(),
    })
}

/// The number of packages that are declared, without those that they need.
fn declared_count(declaration: &Declaration) -> usize {
    let python = declaration.python.as_ref().map_or(0, |python| python.lines().len());
    let node = declaration.node.as_ref().map_or(0, |node| {
        let table = node.manifest.get("dependencies").and_then(serde_json::Value::as_object);
        table.map_or(0, serde_json::Map::len)
    });
    python + node
}

fn first_packages(declaration: &Declaration) -> String {
    const SHOWN: usize = 5;
    let mut lines = declaration
        .python
        .as_ref()
        .map(|python| python.lines())
        .unwrap_or_default();
    if let Some(table) = declaration
        .node
        .as_ref()
        .and_then(|node| node.manifest.get("dependencies")?.as_object())
    {
        lines.extend(table.keys().cloned());
    }
    let omitted = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    let suffix = if omitted > 0 {
        format!(" and {omitted} more")
    } else {
        String::new()
    };
    format!("{}{suffix}", lines.join(", "))
}
