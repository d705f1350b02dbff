//! Builds the runtime of a command from the settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skillbox_artifacts::{BucketOptions, Store};
use skillbox_executor::{DockerExecutor, DockerOptions, Executor, Launcher, LocalExecutor};
use skillbox_model::{ErrorBody, ErrorCode, ExecutorKind};
use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
use skillbox_runtime::{DEFAULT_SESSION_LOCK_TIMEOUT, HostDirectories, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner, SpawnerError, SpawnerOptions, UnconfinedPolicy};

use crate::catalog;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Terminal, diagnostics};
use crate::settings::{Environment, HostSettings};

/// The number of idle containers that a server keeps.
const CONTAINER_POOL_SIZE: usize = 4;

/// Forks the process that creates sandboxes. This must happen before this process starts a thread or reads user data.
pub fn fork_spawner(options: SpawnerOptions) -> Result<Spawner, Failure> {
    Spawner::fork_this_process(options).map_err(spawner_failure)
}

/// Starts the spawner of a server as a separate program, which is also possible in a process with many threads.
pub fn start_server_spawner() -> Result<Spawner, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("cannot determine the path of this program: {error}");
        Failure::new(ErrorCode::Internal, message)
    })?;
    skillbox_executor::start_spawner(&program).map_err(spawner_failure)
}

/// The usable profiles, and the errors of broken profiles by name.
pub struct LoadedProfiles {
    pub usable: Profiles,
    pub broken: BTreeMap<String, String>,
}

/// How a runtime is opened.
struct OpenOptions<'a> {
    /// Directories that the user allowed as inputs by naming files in them.
    input_directories: &'a [PathBuf],
    spawner: Option<Spawner>,
    profiles: LoadedProfiles,
    lifetime: Lifetime,
    /// The profile for which the spawner prepares a sandbox at once.
    prepared_profile: Option<&'a str>,
}

/// How long the runtime is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    OneCommand,
    Server,
}

/// Opens a runtime for one command.
pub fn open_runtime(
    context: &Context<'_>,
    host: &HostSettings,
    spawner: Option<Spawner>,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let options = OpenOptions {
        input_directories: &[],
        spawner,
        profiles: load_profiles(context, terminal)?,
        lifetime: Lifetime::OneCommand,
        prepared_profile: None,
    };
    open(context, host, options, terminal)
}

/// Opens a runtime for a server, which watches the skills for changes.
pub fn open_for_server(
    context: &Context<'_>,
    host: &HostSettings,
    spawner: Spawner,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let profiles = load_profiles(context, terminal)?;
    spawner.set_slot_limit(host.slots).map_err(spawner_failure)?;
    let options = OpenOptions {
        input_directories: &[],
        spawner: Some(spawner),
        profiles,
        lifetime: Lifetime::Server,
        prepared_profile: None,
    };
    let runtime = open(context, host, options, terminal)?;
    if host.slots > 0 || host.executor == ExecutorKind::Docker {
        runtime.prepare_executor(host.executor, None);
    }
    Ok(runtime)
}

/// Opens a runtime for a single run. Unless a directory of profiles is configured, only the requested profile is read.
/// Its sandbox is prepared while the skills are scanned.
pub fn open_for_run(
    context: &Context<'_>,
    host: &HostSettings,
    input_directories: &[PathBuf],
    spawner: Option<Spawner>,
    (executor, profile): (ExecutorKind, Option<&str>),
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let profile = profile.unwrap_or(&host.profile);
    let shipped = match &context.settings.profiles {
        None => Profiles::single_shipped(profile),
        Some(_) => None,
    };
    let profiles = match shipped {
        Some(usable) => LoadedProfiles {
            usable,
            broken: BTreeMap::new(),
        },
        None => load_profiles(context, terminal)?,
    };
    let options = OpenOptions {
        input_directories,
        spawner,
        profiles,
        lifetime: Lifetime::OneCommand,
        prepared_profile: (executor == ExecutorKind::Local && host.slots > 0).then_some(profile),
    };
    open(context, host, options, terminal)
}

fn open(
    context: &Context<'_>,
    host: &HostSettings,
    options: OpenOptions<'_>,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let profiles = options.profiles.usable;
    let local = options
        .spawner
        .map(|spawner| local_executor(spawner, &profiles, host.allow_unconfined))
        .transpose()?;
    let local = match (local, options.lifetime) {
        (Some(local), Lifetime::Server) => Some(local.with_cleanup_worker().map_err(|error| {
            let message = format!("cannot start a thread: {error}");
            Failure::new(ErrorCode::Internal, message)
        })?),
        (local, _) => local,
    };
    if let (Some(local), Some(profile)) = (&local, options.prepared_profile.and_then(|name| profiles.get(name))) {
        local.park_sandbox(profile);
    }
    // The spawner prepares the sandbox while this process scans the skills.
    let repository = Arc::new(catalog::open_repository(context, terminal));
    // Only a server that runs scripts in containers keeps a pool of them.
    let pool_size = match (options.lifetime, host.executor) {
        (Lifetime::Server, ExecutorKind::Docker) => CONTAINER_POOL_SIZE,
        _ => 0,
    };
    let docker = docker_executor(context, host, pool_size);
    let executors = local
        .map(|local| Executor::Local(Box::new(local)))
        .into_iter()
        .chain([Executor::Docker(docker)]);
    let executors = executors.collect();
    let allowed: Vec<PathBuf> = host
        .allow_host
        .iter()
        .chain(options.input_directories)
        .cloned()
        .collect();
    let host_directories = HostDirectories::open(&allowed).map_err(|(path, error)| {
        let message = format!("cannot allow inputs from {}: {error}", path.display());
        Failure::of_run(ErrorBody::new(ErrorCode::HostNotAllowed, message))
    })?;
    let settings = RuntimeSettings {
        state_dir: context.settings.state_dir.clone(),
        default_profile: host.profile.clone(),
        allowed_profiles: (!host.allow_profile.is_empty()).then(|| host.allow_profile.clone()),
        broken_profiles: options.profiles.broken,
        default_executor: host.executor,
        host_directories,
        host_environment: passed_variables(&profiles, context.layers.environment()),
        session_lock_timeout: DEFAULT_SESSION_LOCK_TIMEOUT,
        watch_skills: options.lifetime == Lifetime::Server,
    };
    let runtime = Runtime::new(repository, profiles, executors, settings);
    Ok(match artifact_store(context) {
        Some(store) => runtime.with_artifacts(store),
        None => runtime,
    })
}

/// The configured artifact store, if any. It connects at its first use.
fn artifact_store(context: &Context<'_>) -> Option<Store> {
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

/// Opens a runtime with the built-in skills only. It stores its state below `directory` and accepts inputs from there.
/// Without a spawner it cannot run scripts.
pub fn open_built_in(spawner: Option<Spawner>, directory: &Path) -> Result<Runtime, Failure> {
    let profiles = Profiles::shipped();
    let local = spawner
        .map(|spawner| local_executor(spawner, &profiles, false))
        .transpose()?;
    let host_directories = HostDirectories::open(&[directory.to_owned()]).map_err(|(path, error)| {
        Failure::new(ErrorCode::Storage, format!("cannot open {}: {error}", path.display()))
    })?;
    let settings = RuntimeSettings {
        state_dir: directory.join("state"),
        default_profile: "default".to_owned(),
        allowed_profiles: None,
        broken_profiles: Default::default(),
        default_executor: ExecutorKind::Local,
        host_directories,
        host_environment: BTreeMap::new(),
        session_lock_timeout: DEFAULT_SESSION_LOCK_TIMEOUT,
        watch_skills: false,
    };
    let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    let executors = local
        .map(|local| Executor::Local(Box::new(local)))
        .into_iter()
        .collect();
    Ok(Runtime::new(Arc::new(repository), profiles, executors, settings))
}

/// The Docker executor of these settings. It connects at its first use.
pub fn docker_executor(context: &Context<'_>, host: &HostSettings, pool_size: usize) -> Arc<DockerExecutor> {
    Arc::new(DockerExecutor::new(DockerOptions {
        host: host.docker_host.clone(),
        image: host.docker_image.clone(),
        pool_size,
        scratch: context.settings.state_dir.join("containers"),
        unconfined: if host.allow_unconfined {
            UnconfinedPolicy::Allow
        } else {
            UnconfinedPolicy::Refuse
        },
    }))
}

/// The local executor with this spawner, and with a second one for unconfined runs if they are allowed.
pub fn local_executor(spawner: Spawner, profiles: &Profiles, allow_unconfined: bool) -> Result<LocalExecutor, Failure> {
    let launcher = |spawner| Launcher::new(spawner, profiles.iter()).map_err(spawner_failure);
    let unconfined = if allow_unconfined {
        let spawner = Spawner::fork_this_process(SpawnerOptions::unconfined()).map_err(spawner_failure)?;
        Some(launcher(spawner)?)
    } else {
        None
    };
    Ok(LocalExecutor::new(launcher(spawner)?, unconfined))
}

fn spawner_failure(error: SpawnerError) -> Failure {
    Failure::from_error(ErrorCode::ExecutorUnavailable, &error).with_run_exit_code()
}

/// The environment variables that profiles pass to scripts; no others leave this crate.
fn passed_variables(profiles: &Profiles, environment: &Environment) -> BTreeMap<String, OsString> {
    let named = profiles.iter().flat_map(|profile| &profile.environment.pass);
    named
        .filter_map(|variable| Some((variable.name.clone(), environment.get(&variable.name)?.to_owned())))
        .collect()
}

/// Loads the shipped profiles and those of the settings, and prints the diagnostics of broken ones.
pub fn load_profiles(context: &Context<'_>, terminal: &mut Terminal) -> Result<LoadedProfiles, Failure> {
    let Some(directory) = &context.settings.profiles else {
        return Ok(LoadedProfiles {
            usable: Profiles::shipped(),
            broken: BTreeMap::new(),
        });
    };
    let (usable, found) = Profiles::with_directory(directory).map_err(|error| {
        let message = format!("cannot read the profiles in {}: {error}", directory.display());
        Failure::new(ErrorCode::ProfileInvalid, message)
    })?;
    diagnostics::print_diagnostics(&found, context.verbosity, terminal)?;
    let broken = found.iter().filter_map(|diagnostic| {
        let name = diagnostic.path.file_stem()?.to_str()?.to_owned();
        Some((name, format!("{}: {}", diagnostic.path.display(), diagnostic.message)))
    });
    Ok(LoadedProfiles {
        broken: broken.collect(),
        usable,
    })
}
