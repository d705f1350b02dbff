//! Builds the runtime of a command from the settings.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use skillbox_artifacts::{BucketOptions, Store};
use skillbox_executor::job::RequestCaps;
use skillbox_executor::snapshot::SnapshotRetention;
use skillbox_executor::{DockerExecutor, DockerOptions, Executor, Launcher, LocalExecutor};
use skillbox_model::{ByteSize, Diagnostic, ErrorBody, ErrorCode, ExecutorKind, HostPort};
use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
use skillbox_runtime::{
    DEFAULT_SESSION_LOCK_TIMEOUT, EnvironmentMode, EnvironmentSettings, HostDirectories, Runtime, RuntimeSettings,
    network_access, select_profile,
};
use skillbox_sandbox::{Profiles, Spawner, SpawnerError, SpawnerOptions, UnconfinedPolicy};

use crate::catalog;
use crate::context::Context;
use crate::egress_setup::new_egress;
use crate::failure::Failure;
use crate::host_registries::host_registries;
use crate::render::diagnostics::DiagnosticsStyle;
use crate::render::{Terminal, diagnostics};
use crate::secret_source::configured_secrets;
use crate::settings::{Environment, HostSettings, LogLevel};
use crate::sources::{NamedSkill, skills_root_directories};
use crate::trust_setup;

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
    /// The skill that the command line names.
    named_skill: Option<&'a NamedSkill>,
    /// When packages are installed, unless a setting says it.
    default_environments: EnvironmentMode,
    /// Packages that the command line adds to those of skills.
    added_packages: &'a [String],
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
        named_skill: None,
        default_environments: EnvironmentMode::Auto,
        added_packages: &[],
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
    let profiles = if context.settings.log == LogLevel::Off {
        load_profiles(context, terminal)?
    } else {
        // A server whose log is JSON writes nothing else.
        let (profiles, found) = read_profiles(context)?;
        for diagnostic in found {
            tracing::warn!(path = %diagnostic.path.display(), "{}", diagnostic.summary());
        }
        profiles
    };
    spawner.set_max_parked(host.slots).map_err(spawner_failure)?;
    let options = OpenOptions {
        input_directories: &[],
        spawner: Some(spawner),
        profiles,
        lifetime: Lifetime::Server,
        prepared_profile: None,
        named_skill: None,
        default_environments: EnvironmentMode::Prebuilt,
        added_packages: &[],
    };
    let runtime = open(context, host, options, terminal)?;
    runtime.close_lost_runs();
    if host.slots > 0 || host.executor == ExecutorKind::Docker {
        runtime.prepare_executor(host.executor, None);
    }
    Ok(runtime)
}

/// Opens a runtime for a batch: as for a server, with a parked sandbox for each job that runs at the same time.
pub fn open_for_batch(
    context: &Context<'_>,
    host: &HostSettings,
    input_directories: &[PathBuf],
    jobs: usize,
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    // A host that cannot sandbox processes can still run containers.
    let spawner = match start_server_spawner() {
        Err(_) if host.executor == ExecutorKind::Docker => None,
        started => Some(started?),
    };
    if let Some(spawner) = &spawner {
        let slots = match host.slots {
            0 => 0,
            slots => slots.max(u8::try_from(jobs).unwrap_or(u8::MAX)),
        };
        spawner.set_max_parked(slots).map_err(spawner_failure)?;
    }
    let options = OpenOptions {
        input_directories,
        spawner,
        profiles: load_profiles(context, terminal)?,
        lifetime: Lifetime::Server,
        prepared_profile: None,
        named_skill: None,
        default_environments: EnvironmentMode::Auto,
        added_packages: &[],
    };
    let runtime = open(context, host, options, terminal)?;
    runtime.close_lost_runs();
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
    (input_directories, named_skill, added_packages): (&[PathBuf], Option<&NamedSkill>, &[String]),
    spawner: Option<Spawner>,
    (executor, profile): (ExecutorKind, Option<&str>),
    terminal: &mut Terminal,
) -> Result<Runtime, Failure> {
    let granted = host.allow_net.iter().cloned().collect();
    let profile = select_profile(profile, &host.profile, &granted);
    let shipped = match &context.settings.profiles {
        None => Profiles::single_shipped(profile),
        Some(_) => None,
    };
    let profiles = match shipped {
        Some(usable) => LoadedProfiles {
            usable: with_profile_for_approved_hosts(usable, profile, context),
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
        named_skill,
        default_environments: EnvironmentMode::Auto,
        added_packages,
    };
    open(context, host, options, terminal)
}

/// An approval can grant hosts, which turn the default profile into the one with a network. Which approval counts is known
/// only when the skill is frozen.
fn with_profile_for_approved_hosts(usable: Profiles, profile: &str, context: &Context<'_>) -> Profiles {
    if profile == "default" && trust_setup::has_approvals(context) {
        usable.with_shipped("network")
    } else {
        usable
    }
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
    let egress = new_egress(host)?;
    let local = local.map(|local| local.with_egress(egress));
    let granted_hosts: BTreeSet<HostPort> = host.allow_net.iter().cloned().collect();
    if let (Some(local), Some(profile)) = (&local, options.prepared_profile.and_then(|name| profiles.get(name))) {
        // The run itself reports hosts that it cannot have.
        let network = network_access(profile, &granted_hosts).unwrap_or_default();
        local.park_sandbox(profile, network);
    }
    // The spawner prepares the sandbox while this process scans the skills.
    let repository = Arc::new(catalog::open_repository_with(context, options.named_skill, terminal));
    // Only a server that runs scripts in containers keeps a pool of them.
    let pool_size = match (options.lifetime, host.executor) {
        (Lifetime::Server, ExecutorKind::Docker) => CONTAINER_POOL_SIZE,
        _ => 0,
    };
    let docker = docker_executor(context, host, pool_size, skills_roots(context, host)?);
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
        Failure::from_body(ErrorBody::new(ErrorCode::HostNotAllowed, message))
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
        granted_hosts,
        secrets: configured_secrets(context.layers),
        request_caps: RequestCaps {
            inputs: host.max_inputs,
            files: host.max_output_files as u64,
            inline_bytes: host.max_inline as u64,
            collected_bytes: host.max_collected as u64,
        },
        snapshot_retention: SnapshotRetention {
            max_age: Duration::from_secs(host.snapshot_days as u64 * 24 * 3600),
            max_bytes: ByteSize(host.max_snapshot_bytes as u64),
        },
        skill_dir: host.skill_dir,
        skill_dir_keep: trust_setup::skill_dir_keep(context, host.skill_dir_keep)?,
        trust: trust_setup::trust_settings(context)?,
        history: trust_setup::history_limits(context),
        environments: EnvironmentSettings {
            mode: host.environments.unwrap_or(options.default_environments),
            registries: host_registries(context.layers.environment()),
            file_hosts: host.package_hosts.iter().cloned().collect(),
            added_packages: options.added_packages.to_vec(),
            ..EnvironmentSettings::default()
        },
    };
    let runtime = Runtime::new(repository, profiles, executors, settings);
    let artifacts = artifact_store(context).unwrap_or_else(|| Store::new(context.settings.state_dir.join("artifacts")));
    Ok(runtime.with_artifacts(artifacts.with_quota(host.max_artifact_bytes as u64)))
}

/// The configured artifact store, if any. It connects at its first use.
pub fn artifact_store(context: &Context<'_>) -> Option<Store> {
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
        host_directories,
        ..RuntimeSettings::with_state_dir(directory.join("state"))
    };
    let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    let executors = local
        .map(|local| Executor::Local(Box::new(local)))
        .into_iter()
        .collect();
    Ok(Runtime::new(Arc::new(repository), profiles, executors, settings))
}

/// The Docker executor of these settings. It connects at its first use.
pub fn docker_executor(
    context: &Context<'_>,
    host: &HostSettings,
    pool_size: usize,
    skills_roots: Vec<PathBuf>,
) -> Arc<DockerExecutor> {
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
        skills_roots,
    }))
}

/// The directories of `SKILLS_ROOT` that containers see, if the operator asks for it.
fn skills_roots(context: &Context<'_>, host: &HostSettings) -> Result<Vec<PathBuf>, Failure> {
    if !host.mount_skills_root {
        return Ok(Vec::new());
    }
    let refused = |message: String| Failure::new(ErrorCode::InvalidRequest, message);
    let roots = skills_root_directories(context.layers.environment());
    if roots.is_empty() {
        return Err(refused(
            "mount_skills_root: the variable SKILLS_ROOT names no directory".to_owned(),
        ));
    }
    let resolve = |path: &PathBuf| match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(refused(format!(
            "mount_skills_root: {} in SKILLS_ROOT is not a directory",
            path.display()
        ))),
        Err(error) => Err(refused(format!(
            "mount_skills_root: cannot open {} in SKILLS_ROOT: {error}",
            path.display()
        ))),
    };
    roots.iter().map(resolve).collect()
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
    Failure::from_error(ErrorCode::ExecutorUnavailable, &error)
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
    let (profiles, found) = read_profiles(context)?;
    diagnostics::print_diagnostics(&found, DiagnosticsStyle::Complete, context.verbosity, terminal)?;
    Ok(profiles)
}

/// Reads the shipped profiles and those of the settings, with the diagnostics of broken ones.
fn read_profiles(context: &Context<'_>) -> Result<(LoadedProfiles, Vec<Diagnostic>), Failure> {
    let Some(directory) = &context.settings.profiles else {
        let shipped = LoadedProfiles {
            usable: Profiles::shipped(),
            broken: BTreeMap::new(),
        };
        return Ok((shipped, Vec::new()));
    };
    let (usable, found) = Profiles::with_directory(directory).map_err(|error| {
        let message = format!("cannot read the profiles in {}: {error}", directory.display());
        Failure::new(ErrorCode::ProfileInvalid, message)
    })?;
    let broken = found.iter().filter_map(|diagnostic| {
        let name = diagnostic.path.file_stem()?.to_str()?.to_owned();
        Some((name, format!("{}: {}", diagnostic.path.display(), diagnostic.message)))
    });
    let profiles = LoadedProfiles {
        broken: broken.collect(),
        usable,
    };
    Ok((profiles, found))
}
