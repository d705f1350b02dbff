//! Runs one job in the kernel's sandbox: plan, launch, supervise, decide the outcome.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::pipe::PipeFlags;
use skillbox_egress::{Egress, RunNetwork};
use skillbox_model::{Layer, LayerState, Limits, RunEvent};
use skillbox_sandbox::{
    Bind, BindAccess, BindKind, BindOwner, CommandEnd, HostFacts, Job, LaunchFds, LaunchPlan, Need, Profile, Sandbox,
    Spawner, SpawnerError, UnconfinedPolicy, WorkspaceSource,
};

use super::LocalError;
use super::certificates::Certificates;
use super::cleanup_worker::CleanupWorker;
use super::disk_usage::{DiskUsageCheck, image_tolerance};
use super::network::{certificates_bind, issue_credentials, open_network};
use super::plan_cache::PlanCache;
use super::supervise::{Pipes, SupervisionParams, supervise};
use crate::job::JobSpec;
use crate::layout;
use crate::outcome::{KillReason, RunEvidence, decide_outcome};
use crate::workspace::{Backing, Owner, Workspace};
use crate::{CancelToken, EventSink, ExecutionResult, NetworkAccess, PackageMounts, StagedJob};

const SIGKILL: i32 = 9;

/// How often skillbox checks the limits that the kernel does not enforce.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs jobs as processes of this host.
#[derive(Clone, Debug)]
pub struct LocalExecutor {
    sandbox_launcher: Launcher,
    host_mounts_launcher: Option<Launcher>,
    cleanup_worker: Option<Arc<CleanupWorker>>,
    egress: Egress,
    /// The number of runs at this moment.
    active_runs: Arc<AtomicU64>,
}

/// Counts a run until it is dropped.
struct ActiveRun<'a>(&'a AtomicU64);

impl<'a> ActiveRun<'a> {
    fn start(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for ActiveRun<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A running spawner, with the facts that it gathered about this host.
#[derive(Clone, Debug)]
pub struct Launcher {
    spawner: Spawner,
    facts: HostFacts,
    plan_cache: Arc<PlanCache>,
}

impl Launcher {
    /// Waits for the spawner's facts, and adds facts about the paths that the profiles mention.
    pub fn new<'a>(spawner: Spawner, profiles: impl Iterator<Item = &'a Profile>) -> Result<Self, SpawnerError> {
        let facts = spawner.facts()?.clone().with_profile_paths(profiles);
        Ok(Self {
            spawner,
            facts,
            plan_cache: Arc::default(),
        })
    }
}

impl LocalExecutor {
    /// Creates an executor. `host_mounts_launcher` is for profiles without a mount namespace: its children see the same
    /// mounts as the caller. Without it, such profiles are refused.
    pub fn new(sandbox_launcher: Launcher, host_mounts_launcher: Option<Launcher>) -> Self {
        Self {
            sandbox_launcher,
            host_mounts_launcher,
            cleanup_worker: None,
            active_runs: Arc::default(),
            egress: Egress::default(),
        }
    }

    /// Uses this for the connections of runs that may reach hosts.
    pub fn with_egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// Starts a thread that creates workspaces ahead of runs and removes them afterwards, for servers.
    pub fn with_cleanup_worker(mut self) -> std::io::Result<Self> {
        let (spawner, script_owner) = (self.sandbox_launcher.spawner.clone(), self.script_owner());
        let cleanup_worker = CleanupWorker::start(Box::new(move |(bytes, inodes)| {
            let mount = spawner.create_workspace(bytes, inodes).ok()?;
            Workspace::in_memory(mount, script_owner)
                .ok()?
                .with_layout_directories()
                .ok()
        }))?;
        self.cleanup_worker = Some(Arc::new(cleanup_worker));
        Ok(self)
    }

    /// Whether the spawner still runs.
    pub fn is_alive(&self) -> bool {
        self.sandbox_launcher.spawner.is_alive()
    }

    /// The number of sandboxes that wait for a run: the children of the spawner that serve none. A sandbox that ends or
    /// starts at this moment may be counted on the wrong side. None if the kernel does not list children.
    pub fn parked_sandboxes(&self) -> Option<u64> {
        let pid = self.sandbox_launcher.spawner.pid()?;
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let children = children.split_whitespace().count() as u64;
        Some(children.saturating_sub(self.active_runs.load(Ordering::Relaxed)))
    }

    /// The isolation that this host can provide.
    pub fn facts(&self) -> &HostFacts {
        &self.sandbox_launcher.facts
    }

    /// The launcher for a profile.
    fn launcher(&self, profile: &Profile) -> &Launcher {
        match &self.host_mounts_launcher {
            Some(host_mounts_launcher) if !has_own_mounts(profile) => host_mounts_launcher,
            _ => &self.sandbox_launcher,
        }
    }

    /// The script's user on the host, if it differs from the user of this process.
    pub fn script_owner(&self) -> Option<Owner> {
        script_owner(&self.sandbox_launcher.facts)
    }

    /// Creates an empty workspace in memory, within the limits.
    pub fn create_workspace(&self, profile: &Profile, limits: &Limits) -> Result<Workspace, LocalError> {
        let spare = self
            .cleanup_worker
            .as_ref()
            .and_then(|worker| worker.take_spare(limits));
        if let Some(spare) = spare {
            return Ok(spare);
        }
        let created = self
            .sandbox_launcher
            .spawner
            .create_workspace(limits.workspace, limits.workspace_inodes);
        let mount = created.map_err(|error| match error {
            // If the host does not allow a mount, the plan determines which layer of the profile is missing and why.
            SpawnerError::Refused { .. } => match self.plan(profile, limits, &StagedJob::empty(), Backing::Tmpfs) {
                Err(refusal) => refusal,
                Ok(_) => LocalError::Isolation(error),
            },
            error => LocalError::Spawner(error),
        })?;
        Workspace::in_memory(mount, self.script_owner()).map_err(|error| LocalError::Descriptor(error.into()))
    }

    /// Discards a workspace that was created for one run.
    pub fn discard_workspace(&self, workspace: Workspace, limits: &Limits) {
        if let Some(worker) = &self.cleanup_worker {
            worker.discard_workspace(workspace, limits);
        }
    }

    /// Releases the sandboxes of finished runs whose workspaces are kept.
    pub fn release_finished_sandboxes(&self) {
        if let Some(worker) = &self.cleanup_worker {
            worker.release_finished_sandboxes();
        }
    }

    /// The plan of a job, exactly as it is applied.
    pub fn plan(
        &self,
        profile: &Profile,
        limits: &Limits,
        job: &StagedJob,
        backing: Backing,
    ) -> Result<LaunchPlan, LocalError> {
        let job = self.sandbox_job(job, backing, limits);
        let Launcher { facts, plan_cache, .. } = self.launcher(profile);
        plan_cache.plan(profile, limits, facts, job).map_err(LocalError::Plan)
    }

    /// Parks a sandbox for the next run under this profile, with access to these hosts. Errors are ignored here: the run encounters and reports
    /// them.
    pub fn park_sandbox(&self, profile: &Profile, network: NetworkAccess) {
        let limits = &profile.limits.default;
        let job = StagedJob::empty().with_network(network);
        if let Ok(plan) = self.plan(profile, limits, &job, Backing::Tmpfs) {
            let _ = self.launcher(profile).spawner.park_sandbox(&plan);
        }
    }

    /// Runs a staged job until no process of it is left.
    pub fn run(
        &self,
        spec: &JobSpec,
        profile: &Profile,
        job: StagedJob,
        workspace: &Workspace,
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> Result<ExecutionResult, LocalError> {
        let job = if has_own_mounts(profile) {
            job
        } else {
            job.with_host_paths(workspace)?
        };
        let (job, layers_failure) = job.create_skill_layers(workspace);
        let (credentials, certificates) = issue_credentials(&self.egress, &job.network)?;
        let job = job.with_placeholders(credentials.placeholders());
        let plan = self.plan(profile, &spec.limits, &job, workspace.backing())?;
        let _active = ActiveRun::start(&self.active_runs);
        let spawner = &self.launcher(profile).spawner;
        let (mut sandbox, pipes) = launch(spawner, spec, &plan, (&job, certificates.as_ref()), workspace)?;
        let network = open_network(&self.egress, &job.network, credentials, &mut sandbox)?;
        let begin = Instant::now();
        events.emit(|| RunEvent::Started);
        let mut disk = DiskUsageCheck::new(spec.limits.workspace, spec.limits.workspace_inodes);
        let mut check_limits = || {
            if sandbox.cpu_used().is_some_and(|used| used > spec.limits.cpu) {
                Some(KillReason::Cpu)
            } else if workspace.backing() != Backing::Tmpfs && disk.is_over_quota(workspace, &sandbox) {
                Some(KillReason::Disk)
            } else {
                None
            }
        };
        let supervised = supervise(
            pipes,
            SupervisionParams {
                sandbox_pidfd: sandbox.pidfd(),
                kill: &|| sandbox.kill(),
                deadline: begin + spec.limits.wall,
                cancel,
                check_limits: &mut check_limits,
                check_interval: LIMIT_CHECK_INTERVAL,
                output_capacity: usize::try_from(spec.limits.output.bytes()).unwrap_or(usize::MAX),
                redactor: &job.redactor,
                events,
            },
        )
        .map_err(LocalError::Supervise)?;
        let duration = begin.elapsed();
        let (stdout, stderr) = (supervised.stdout.finish(events), supervised.stderr.finish(events));
        let sandbox_end = sandbox.finish(&plan).map_err(LocalError::Launch)?;
        let network = network.map(RunNetwork::finish);
        if let Some(worker) = &self.cleanup_worker {
            worker.defer_release(sandbox);
        }
        let (exit_code, signal) = match sandbox_end.end {
            CommandEnd::Exited(code) => (Some(code), None),
            CommandEnd::Signaled(signal) => (None, Some(signal)),
            CommandEnd::Killed => (None, Some(SIGKILL)),
        };
        let (outcome, mut warnings) = decide_outcome(&RunEvidence {
            kill_reason: supervised.kill_reason,
            exit_code,
            signal,
            memory_limit_hit: sandbox_end.limit_hits.memory,
            pids_limit_hit: sandbox_end.limit_hits.pids,
            workspace_full: match workspace.backing() {
                Backing::Tmpfs => workspace.is_full(),
                Backing::Image { .. } => workspace.is_full() || disk.is_over_quota_now(workspace),
                Backing::Disk => disk.is_over_quota_now(workspace),
            },
        });
        if let Some(errno) = sandbox_end.exec_error {
            let cause = std::io::Error::from_raw_os_error(errno);
            warnings.push(format!("cannot execute the command: {cause}"));
        }
        if let Some(Err(error)) = certificates.map(Certificates::remove) {
            warnings.push(format!("cannot remove the certificate authorities of the run: {error}"));
        }
        if let Some(reason) = layers_failure.or(sandbox_end.read_only_skill) {
            warnings.push(format!(
                "the directory of the skill was read-only in this run: {reason}"
            ));
        }
        events.emit(|| RunEvent::Ended {
            ended_by: outcome.ended_by,
        });
        Ok(ExecutionResult {
            outcome,
            stdout,
            stderr,
            duration,
            usage: sandbox_end.usage,
            enforcement: sandbox_end.enforcement,
            network,
            warnings,
        })
    }

    fn sandbox_job(&self, job: &StagedJob, backing: Backing, limits: &Limits) -> Job {
        let mount_points = job.mount_points.iter().map(|_| Bind {
            target: format!("{}/{}", layout::ROOT, layout::SKILLS),
            kind: BindKind::Directory,
            access: BindAccess::ReadOnly,
            owner: BindOwner::Unchanged,
        });
        let writable_skill = job.writable_skill();
        let skills = job.skills.iter().enumerate().map(|(index, (name, _))| Bind {
            target: format!("{}/{}", layout::ROOT, layout::skill_directory(name)),
            kind: BindKind::Directory,
            access: BindAccess::ReadOnly,
            // The script can change a file in an overlay only if it owns the file.
            owner: if index == 0 && writable_skill.is_some() {
                BindOwner::Script
            } else {
                BindOwner::Unchanged
            },
        });
        let links = job.links.iter().map(|link| Bind {
            target: format!("{}/{}", layout::ROOT, link.to),
            kind: if link.is_directory {
                BindKind::Directory
            } else {
                BindKind::File
            },
            access: BindAccess::ReadOnly,
            owner: BindOwner::Script,
        });
        let packages = job
            .packages
            .iter()
            .flat_map(PackageMounts::mounts)
            .map(|(target, _)| Bind {
                target: target.to_owned(),
                kind: BindKind::Directory,
                access: BindAccess::ReadOnly,
                owner: BindOwner::Unchanged,
            });
        Job {
            argv: job.argv.clone(),
            env: job.env.clone().into_iter().collect(),
            cwd: job.cwd.clone(),
            workspace: match backing {
                Backing::Tmpfs => WorkspaceSource::Tmpfs,
                Backing::Image { capacity } if capacity <= image_tolerance(limits.workspace) => WorkspaceSource::Image,
                Backing::Image { .. } => WorkspaceSource::LargerImage {
                    quota: LayerState::Partial {
                        reason: "the session was created with a larger limit; the usage is checked periodically"
                            .to_owned(),
                    },
                },
                Backing::Disk => WorkspaceSource::Directory {
                    quota: LayerState::Partial {
                        reason: "a directory of the host, checked periodically; a fast writer can exceed the limit"
                            .to_owned(),
                    },
                },
            },
            workspace_target: layout::ROOT.to_owned(),
            binds: mount_points
                .chain(skills)
                .chain(links)
                .chain(packages)
                .chain(certificates_bind(&job.network))
                .collect(),
            unconfined: if self.host_mounts_launcher.is_some() {
                UnconfinedPolicy::Allow
            } else {
                UnconfinedPolicy::Refuse
            },
            listening_ports: job.network.listening_ports(),
            writable_skill: writable_skill.clone(),
        }
    }
}

fn launch(
    spawner: &Spawner,
    spec: &JobSpec,
    plan: &LaunchPlan,
    (job, certificates): (&StagedJob, Option<&Certificates>),
    workspace: &Workspace,
) -> Result<(Sandbox, Pipes), LocalError> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| LocalError::Descriptor(error.into()));
    let (out_read, out_write) = pipe()?;
    let (err_read, err_write) = pipe()?;
    // Without input, the command reads end-of-file immediately. It gets neither a terminal nor an open pipe.
    let (stdin_read, stdin_write) = if spec.stdin.is_empty() {
        let null = File::open("/dev/null").map_err(LocalError::Descriptor)?;
        (OwnedFd::from(null), None)
    } else {
        let (read, write) = pipe()?;
        (read, Some((write, spec.stdin.clone())))
    };
    let mount_points = job.mount_points.iter().map(OwnedFd::as_fd);
    let skills = job.skills.iter().map(|(_, snapshot)| snapshot.root());
    let links = job.links.iter().map(|link| link.source.as_fd());
    let packages = job.packages.iter().flat_map(PackageMounts::mounts);
    let packages = packages.map(|(_, directory)| directory.as_fd());
    let certificates = certificates.map(Certificates::as_fd);
    let fds = LaunchFds {
        workspace: Some(workspace.mount_fd()),
        binds: mount_points
            .chain(skills)
            .chain(links)
            .chain(packages)
            .chain(certificates)
            .collect(),
        stdin: stdin_read.as_fd(),
        stdout: out_write.as_fd(),
        stderr: err_write.as_fd(),
    };
    let sandbox = spawner.launch(plan, &fds).map_err(LocalError::Launch)?;
    if let Some(failure) = sandbox.parking_failure() {
        tracing::warn!(%failure, "a sandbox could not be parked ahead of its run");
    }
    let pipes = Pipes {
        stdin: stdin_write,
        stdout: out_read,
        stderr: err_read,
        write_ends: [out_write, err_write],
    };
    Ok((sandbox, pipes))
}

/// Whether scripts get their own mounts, and thus the workspace at `/workspace`.
fn has_own_mounts(profile: &Profile) -> bool {
    profile.need(Layer::MountNamespace) != Need::Off
}

fn script_owner(facts: &HostFacts) -> Option<Owner> {
    facts.privileged.then_some(Owner {
        uid: facts.script_ids.uid,
        gid: facts.script_ids.gid,
    })
}
