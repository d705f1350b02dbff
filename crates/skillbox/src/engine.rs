//! The runtime as the commands need it, put together from the settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skillbox_artifacts::{BucketOptions, Store};
use skillbox_executor::{DockerExecutor, DockerOptions, Executor, Launcher, LocalExecutor};
use skillbox_model::{ErrorBody, ErrorCode, ExecutorKind};
use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
use skillbox_runtime::{DEFAULT_SESSION_WAIT, HostDirectories, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner, SpawnerError, SpawnerOptions, Unconfined};

use crate::catalogue;
use crate::commands::Context;
use crate::failure::Failure;
use crate::render::{Terminal, findings};
use crate::settings::{Environment, HostSettings};

/// Starts the process that makes sandboxes. It is forked off this one, so it comes first: before any thread, and
/// before anything of the user's is read.
pub fn spawner(options: SpawnerOptions) -> Result<Spawner, Failure> {
    Spawner::fork_here(options).map_err(unavailable)
}

/// The spawner of a server: a program of its own, so that a server with many threads can start it too.
pub fn lasting_spawner() -> Result<Spawner, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("cannot tell where this program is: {error}");
        Failure::new(ErrorCode::Internal, message)
    })?;
    skillbox_executor::start_spawner(&program).map_err(unavailable)
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
    open_with(
        context,
        host,
        also_allowed,
        spawner,
        (profiles, broken_profiles),
        Lifetime::OneCommand,
        None,
        terminal,
    )
}

/// The same for a server, which lives long enough to watch the skills that it runs.
pub fn open_server(
    context: &Context<'_>,
    host: &HostSettings,
    spawner: Spawner,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let profiles = profiles(context, terminal)?;
    spawner.keep_slots(host.slots).map_err(unavailable)?;
    let runtime = open_with(
        context,
        host,
        &[],
        Some(spawner),
        profiles,
        Lifetime::Server,
        None,
        terminal,
    )?;
    if host.slots > 0 || host.executor == ExecutorKind::Docker {
        runtime.prepare(host.executor, None);
    }
    Ok(runtime)
}

/// How long the runtime is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    OneCommand,
    Server,
}

/// The same for a single run: without profiles of the host, only the one that is asked for has to be read, and its
/// sandbox is made while the skills are looked for.
pub fn open_for_one(
    context: &Context<'_>,
    host: &HostSettings,
    also_allowed: &[PathBuf],
    spawner: Option<Spawner>,
    (executor, profile): (ExecutorKind, Option<&str>),
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let wanted = profile.unwrap_or(&host.profile);
    let ahead = (executor == ExecutorKind::Local && host.slots > 0).then_some(wanted);
    let known = match &context.settings.profiles {
        None => Profiles::shipped_alone(wanted),
        Some(_) => None,
    };
    let profiles = match known {
        Some(alone) => (alone, BTreeMap::new()),
        None => profiles(context, terminal)?,
    };
    open_with(
        context,
        host,
        also_allowed,
        spawner,
        profiles,
        Lifetime::OneCommand,
        ahead,
        terminal,
    )
}

#[expect(
    clippy::too_many_arguments,
    reason = "the story of opening a runtime, told once for every command"
)]
fn open_with(
    context: &Context<'_>,
    host: &HostSettings,
    also_allowed: &[PathBuf],
    spawner: Option<Spawner>,
    (profiles, broken_profiles): (Profiles, BTreeMap<String, String>),
    lifetime: Lifetime,
    ahead: Option<&str>,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let local = spawner
        .map(|spawner| local(spawner, &profiles, host.allow_unconfined))
        .transpose()?;
    let local = match (local, lifetime) {
        (Some(local), Lifetime::Server) => Some(local.with_housekeeping().map_err(|error| {
            let message = format!("cannot start a thread: {error}");
            Failure::new(ErrorCode::Internal, message)
        })?),
        (local, _) => local,
    };
    if let (Some(local), Some(profile)) = (&local, ahead.and_then(|name| profiles.get(name))) {
        local.prepare(profile);
    }
    // Meanwhile the spawner makes ready what it can.
    let repository = Arc::new(catalogue::open(context, terminal));
    // Only a server that runs in containers has use for some that wait.
    let pool = match (lifetime, host.executor) {
        (Lifetime::Server, ExecutorKind::Docker) => WAITING_CONTAINERS,
        _ => 0,
    };
    let docker = docker(context, host, pool);
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
        watch_skills: lifetime == Lifetime::Server,
    };
    let runtime = Runtime::new(repository, profiles, executors, settings);
    Ok(match artifacts(context) {
        Some(store) => runtime.with_artifacts(store),
        None => runtime,
    })
}

/// The artifact store of the settings, where they name one; nothing is connected yet.
fn artifacts(context: &Context<'_>) -> Option<Store> {
    let settings = context.settings;
    let location = settings.artifacts.clone()?;
    let options = BucketOptions {
        variables: context.layers.environment().object_store_variables(),
        endpoint: settings.artifacts_endpoint.clone(),
        region: settings.artifacts_region.clone(),
        ..BucketOptions::new(settings.state_dir.join("artifacts"))
    };
    Some(Store::at(location, options))
}

/// A runtime on the built-in skills alone, with everything it keeps below `place`, whose files it may take as inputs.
/// Without a spawner it runs nothing.
pub fn of_built_in(spawner: Option<Spawner>, place: &Path) -> Result<Runtime, Failure> {
    let profiles = Profiles::shipped();
    let local = spawner.map(|spawner| local(spawner, &profiles, false)).transpose()?;
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
    let executors = local
        .map(|local| Executor::Local(Box::new(local)))
        .into_iter()
        .collect();
    Ok(Runtime::new(Arc::new(repository), profiles, executors, settings))
}

/// As many containers as a small server keeps waiting.
const WAITING_CONTAINERS: usize = 4;

/// The Docker executor of these settings; nothing is connected yet.
pub fn docker(context: &Context<'_>, host: &HostSettings, pool: usize) -> Arc<DockerExecutor> {
    Arc::new(DockerExecutor::new(DockerOptions {
        host: host.docker_host.clone(),
        image: host.docker_image.clone(),
        pool,
        scratch: context.settings.state_dir.join("containers"),
        unconfined: if host.allow_unconfined {
            Unconfined::Allow
        } else {
            Unconfined::Refuse
        },
    }))
}

/// The local executor on a running spawner. Runs without isolation have a spawner of their own, where they are allowed.
pub fn local(spawner: Spawner, profiles: &Profiles, allow_unconfined: bool) -> Result<LocalExecutor, Failure> {
    let launcher = |spawner| Launcher::new(spawner, profiles.iter()).map_err(unavailable);
    let plain = if allow_unconfined {
        let plain = Spawner::fork_here(SpawnerOptions::plain()).map_err(unavailable)?;
        Some(launcher(plain)?)
    } else {
        None
    };
    Ok(LocalExecutor::new(launcher(spawner)?, plain))
}

fn unavailable(error: SpawnerError) -> Failure {
    Failure::from_error(ErrorCode::ExecutorUnavailable, &error).refusal()
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
