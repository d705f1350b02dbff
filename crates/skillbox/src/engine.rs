//! The runtime as the commands need it, put together from the settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skillbox_executor::{DockerExecutor, DockerOptions, Executor, LocalExecutor};
use skillbox_model::{ErrorBody, ErrorCode, ExecutorKind};
use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
use skillbox_runtime::{DEFAULT_SESSION_WAIT, HostDirectories, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner, SpawnerOptions, Unconfined};

use crate::catalogue;
use crate::commands::Context;
use crate::failure::Failure;
use crate::render::{Terminal, findings};
use crate::settings::{Environment, HostSettings};

/// Starts the process that makes sandboxes. It is forked off this one, so it comes first: before any thread, and
/// before anything of the user's is read.
pub fn spawner() -> Result<Spawner, Failure> {
    Spawner::fork_here(SpawnerOptions::default())
        .map_err(|error| Failure::from_error(ErrorCode::ExecutorUnavailable, &error).refusal())
}

/// A runtime for this host; `also_allowed` are directories that the person named by using them.
pub fn open(
    context: &Context<'_>,
    host: &HostSettings,
    also_allowed: &[PathBuf],
    spawner: Option<Spawner>,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let (profiles, broken_profiles) = profiles(context, terminal)?;
    let local = spawner
        .map(|spawner| local(spawner, &profiles, unconfined(host)))
        .transpose()?;
    // A program that makes one run has no use for containers that wait.
    let docker = docker(context, host, 0);
    let executors = local
        .map(|local| Executor::Local(Box::new(local)))
        .into_iter()
        .chain([Executor::Docker(docker)]);
    let executors = executors.collect();
    let allowed: Vec<PathBuf> = host.allow_host.iter().chain(also_allowed).cloned().collect();
    let host_directories = HostDirectories::open(&allowed).map_err(|(path, error)| {
        let message = format!("cannot allow inputs from {}: {error}", path.display());
        Failure::refused(ErrorBody::new(ErrorCode::HostNotAllowed, message))
    })?;
    let settings = RuntimeSettings {
        state_dir: context.settings.state_dir.clone(),
        default_profile: host.profile.clone(),
        allowed_profiles: (!host.allow_profile.is_empty()).then(|| host.allow_profile.clone()),
        broken_profiles,
        default_executor: host.executor,
        host_directories,
        host_environment: passed_variables(&profiles, context.layers.environment()),
        session_wait: DEFAULT_SESSION_WAIT,
        watch_skills: false,
    };
    let repository = Arc::new(catalogue::open(context, terminal));
    Ok(Runtime::new(repository, profiles, executors, settings))
}

/// A runtime on the built-in skills alone, with everything it keeps below `place`, whose files it may take as inputs.
pub fn of_built_in(spawner: Spawner, place: &Path) -> Result<Runtime, Failure> {
    let profiles = Profiles::shipped();
    let local = local(spawner, &profiles, Unconfined::Refuse)?;
    let host_directories = HostDirectories::open(&[place.to_owned()]).map_err(|(path, error)| {
        Failure::new(ErrorCode::Storage, format!("cannot open {}: {error}", path.display()))
    })?;
    let settings = RuntimeSettings {
        state_dir: place.join("state"),
        default_profile: "default".to_owned(),
        allowed_profiles: None,
        broken_profiles: Default::default(),
        default_executor: ExecutorKind::Local,
        host_directories,
        host_environment: BTreeMap::new(),
        session_wait: DEFAULT_SESSION_WAIT,
        watch_skills: false,
    };
    let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    let executors = vec![Executor::Local(Box::new(local))];
    Ok(Runtime::new(Arc::new(repository), profiles, executors, settings))
}

fn unconfined(host: &HostSettings) -> Unconfined {
    if host.allow_unconfined {
        Unconfined::Allow
    } else {
        Unconfined::Refuse
    }
}

/// The Docker executor of these settings; nothing is connected yet.
pub fn docker(context: &Context<'_>, host: &HostSettings, pool: usize) -> Arc<DockerExecutor> {
    Arc::new(DockerExecutor::new(DockerOptions {
        host: host.docker_host.clone(),
        image: host.docker_image.clone(),
        pool,
        scratch: context.settings.state_dir.join("scratch"),
        unconfined: unconfined(host),
    }))
}

/// The local executor on a running spawner.
pub fn local(spawner: Spawner, profiles: &Profiles, unconfined: Unconfined) -> Result<LocalExecutor, Failure> {
    let facts = spawner
        .facts()
        .map_err(|error| Failure::from_error(ErrorCode::ExecutorUnavailable, &error).refusal())?;
    let facts = facts.clone().with_paths_of(profiles.iter());
    Ok(LocalExecutor::new(spawner, facts, unconfined))
}

/// Only the variables that some profile names leave this crate.
fn passed_variables(profiles: &Profiles, environment: &Environment) -> BTreeMap<String, OsString> {
    let named = profiles.iter().flat_map(|profile| &profile.environment.pass);
    named
        .filter_map(|variable| Some((variable.name.clone(), environment.get(&variable.name)?.to_owned())))
        .collect()
}

/// The shipped profiles and those of the settings; what cannot be used is told, and given by name with the reason.
pub fn profiles(
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<(Profiles, BTreeMap<String, String>), Failure> {
    let Some(directory) = &context.settings.profiles else {
        return Ok((Profiles::shipped(), BTreeMap::new()));
    };
    let (profiles, told) = Profiles::with_directory(directory).map_err(|error| {
        let message = format!("cannot read the profiles of {}: {error}", directory.display());
        Failure::new(ErrorCode::ProfileInvalid, message)
    })?;
    findings::tell(&told, context.verbosity, terminal)?;
    let broken = told.iter().filter_map(|finding| {
        let name = finding.path.file_stem()?.to_str()?.to_owned();
        Some((name, format!("{}: {}", finding.path.display(), finding.message)))
    });
    let broken = broken.collect();
    Ok((profiles, broken))
}
