//! One job in the kernel's sandbox: plan, launch, watch, decide.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::pipe::PipeFlags;
use skillbox_model::{Layer, LayerState, Limits, RunEvent};
use skillbox_sandbox::{
    Access, Bind, BindKind, HostFacts, Job, LaunchFds, LaunchPlan, Need, Ownership, Profile, Sandbox, ScriptEnd,
    Spawner, SpawnerError, Unconfined,
};

use super::LocalError;
use super::disk_watch::DiskWatch;
use super::housekeeping::Housekeeping;
use super::plans::Plans;
use super::supervise::{Pipes, Supervision, Verdict, supervise};
use super::verdict::{Evidence, decide};
use crate::job::JobSpec;
use crate::workspace::layout;
use crate::workspace::{Backing, Owner, Workspace};
use crate::{Cancel, EventSink, Finished, Placement};

const SIGKILL: i32 = 9;

/// How often limits are looked at that the kernel does not enforce by itself.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// Runs jobs as processes of this host.
#[derive(Clone, Debug)]
pub struct LocalExecutor {
    confining: Launcher,
    plain: Option<Launcher>,
    housekeeping: Option<Arc<Housekeeping>>,
}

/// A running spawner, and what it found on this host.
#[derive(Clone, Debug)]
pub struct Launcher {
    spawner: Spawner,
    facts: HostFacts,
    plans: Arc<Plans>,
}

impl Launcher {
    /// Waits for the spawner's facts and adds what the profiles ask about.
    pub fn new<'a>(spawner: Spawner, profiles: impl Iterator<Item = &'a Profile>) -> Result<Self, SpawnerError> {
        let facts = spawner.facts()?.clone().with_paths_of(profiles);
        Ok(Self {
            spawner,
            facts,
            plans: Arc::default(),
        })
    }
}

impl LocalExecutor {
    /// An executor. Profiles without a view of their own need a plain spawner, whose children see the host as the
    /// caller does; without one they are refused.
    pub fn new(confining: Launcher, plain: Option<Launcher>) -> Self {
        Self {
            confining,
            plain,
            housekeeping: None,
        }
    }

    /// Workspaces are made ahead of runs and taken down after them by a thread of its own, as a server wants it.
    pub fn with_housekeeping(mut self) -> std::io::Result<Self> {
        let (spawner, owner) = (self.confining.spawner.clone(), self.owner());
        let housekeeping = Housekeeping::start(Box::new(move |(bytes, inodes)| {
            let mount = spawner.create_workspace(bytes, inodes).ok()?;
            Workspace::in_memory(mount, owner).ok()?.furnished().ok()
        }))?;
        self.housekeeping = Some(Arc::new(housekeeping));
        Ok(self)
    }

    /// Whether it can still run anything.
    pub fn is_alive(&self) -> bool {
        self.confining.spawner.is_alive()
    }

    /// What this host can enforce.
    pub fn facts(&self) -> &HostFacts {
        &self.confining.facts
    }

    /// Who launches under a profile.
    fn launcher(&self, profile: &Profile) -> &Launcher {
        match &self.plain {
            Some(plain) if !shows_own_root(profile) => plain,
            _ => &self.confining,
        }
    }

    /// The script's user on the host, where that is not ours.
    pub fn owner(&self) -> Option<Owner> {
        owner(&self.confining.facts)
    }

    /// An empty workspace in memory, within the limits.
    pub fn create_workspace(&self, profile: &Profile, limits: &Limits) -> Result<Workspace, LocalError> {
        let spare = self.housekeeping.as_ref().and_then(|keeping| keeping.take(limits));
        if let Some(spare) = spare {
            return Ok(spare);
        }
        let made = self
            .confining
            .spawner
            .create_workspace(limits.workspace, limits.workspace_inodes);
        let mount = made.map_err(|error| match error {
            // Where not even a mount can be had, the plan says which layer of the profile is missing, and why.
            SpawnerError::Refused { .. } => match self.plan(profile, limits, &Placement::empty(), Backing::Tmpfs) {
                Err(refusal) => refusal,
                Ok(_) => LocalError::Isolation(error),
            },
            error => LocalError::Spawner(error),
        })?;
        Workspace::in_memory(mount, self.owner()).map_err(|error| LocalError::Pipe(error.into()))
    }

    /// Lets a workspace go that was made for one run.
    pub fn take_down(&self, workspace: Workspace, limits: &Limits) {
        if let Some(keeping) = &self.housekeeping {
            keeping.take_down(workspace, limits);
        }
    }

    /// Lets go of what runs have left, where their workspaces stay.
    pub fn clear_away(&self) {
        if let Some(keeping) = &self.housekeeping {
            keeping.clear_away();
        }
    }

    /// The plan of a job, exactly as it will be applied.
    pub fn plan(
        &self,
        profile: &Profile,
        limits: &Limits,
        placement: &Placement,
        backing: Backing,
    ) -> Result<LaunchPlan, LocalError> {
        let job = self.job(placement, backing);
        let Launcher { facts, plans, .. } = self.launcher(profile);
        plans.plan(profile, limits, facts, job).map_err(LocalError::Plan)
    }

    /// Has a sandbox made ahead for a run under this profile. A failure comes up again, and is told, when the run comes.
    pub fn prepare(&self, profile: &Profile) {
        let limits = &profile.limits.default;
        if let Ok(plan) = self.plan(profile, limits, &Placement::empty(), Backing::Tmpfs) {
            let _ = self.launcher(profile).spawner.prepare(&plan);
        }
    }

    /// Runs a staged job until everything of it is dead.
    pub fn run(
        &self,
        spec: &JobSpec,
        profile: &Profile,
        placement: Placement,
        workspace: &Workspace,
        cancel: &Cancel,
        events: &mut EventSink<'_>,
    ) -> Result<Finished, LocalError> {
        let placement = if shows_own_root(profile) {
            placement
        } else {
            placement.in_the_open(workspace)?
        };
        let plan = self.plan(profile, &spec.limits, &placement, workspace.backing())?;
        let spawner = &self.launcher(profile).spawner;
        let (mut sandbox, pipes) = launch(spawner, spec, &plan, &placement, workspace)?;
        let begin = Instant::now();
        events.emit(|| RunEvent::Started);
        let mut disk = DiskWatch::new(spec.limits.workspace, spec.limits.workspace_inodes);
        let mut watchdog = || {
            if sandbox.cpu_used().is_some_and(|used| used > spec.limits.cpu) {
                Verdict::CpuUsedUp
            } else if workspace.backing() == Backing::Disk && disk.is_over(workspace) {
                Verdict::DiskFull
            } else {
                Verdict::Fine
            }
        };
        let watched = supervise(
            pipes,
            Supervision {
                dead: sandbox.pidfd(),
                kill: &|| sandbox.kill(),
                deadline: begin + spec.limits.wall,
                cancel,
                watchdog: &mut watchdog,
                watch_every: WATCH_EVERY,
                output_cap: usize::try_from(spec.limits.output.bytes()).unwrap_or(usize::MAX),
                events,
            },
        )
        .map_err(LocalError::Watch)?;
        let duration = begin.elapsed();
        let ended = sandbox.finish(&plan).map_err(LocalError::Launch)?;
        if let Some(keeping) = &self.housekeeping {
            keeping.leave(sandbox);
        }
        let (exit_code, signal) = match ended.end {
            ScriptEnd::Exited(code) => (Some(code), None),
            ScriptEnd::Signaled(signal) => (None, Some(signal)),
            ScriptEnd::Killed => (None, Some(SIGKILL)),
        };
        let (outcome, mut warnings) = decide(&Evidence {
            killed: watched.killed,
            exit_code,
            signal,
            memory_hit: ended.hits.memory,
            pids_hit: ended.hits.pids,
            workspace_full: match workspace.backing() {
                Backing::Tmpfs => workspace.is_full(),
                Backing::Disk => disk.is_over_now(workspace),
            },
        });
        if let Some(errno) = ended.exec_error {
            let cause = std::io::Error::from_raw_os_error(errno);
            warnings.push(format!("the command could not be executed: {cause}"));
        }
        events.emit(|| RunEvent::Ended {
            ended_by: outcome.ended_by,
        });
        Ok(Finished {
            outcome,
            stdout: watched.stdout.finish(),
            stderr: watched.stderr.finish(),
            duration,
            usage: ended.usage,
            enforcement: ended.applied,
            warnings,
        })
    }

    fn job(&self, placement: &Placement, backing: Backing) -> Job {
        let places = placement.places.iter().map(|_| Bind {
            target: format!("{}/{}", layout::ROOT, layout::SKILLS),
            kind: BindKind::Directory,
            access: Access::ReadOnly,
            owner: Ownership::Kept,
        });
        let skills = placement.skills.iter().map(|(name, _)| Bind {
            target: format!("{}/{}", layout::ROOT, layout::skill_directory(name)),
            kind: BindKind::Directory,
            access: Access::ReadOnly,
            owner: Ownership::Kept,
        });
        let links = placement.links.iter().map(|link| Bind {
            target: format!("{}/{}", layout::ROOT, link.to),
            kind: if link.is_directory {
                BindKind::Directory
            } else {
                BindKind::File
            },
            access: Access::ReadOnly,
            owner: Ownership::Script,
        });
        Job {
            argv: placement.argv.clone(),
            env: placement.env.clone().into_iter().collect(),
            cwd: placement.cwd.clone(),
            workspace: match backing {
                Backing::Tmpfs => skillbox_sandbox::Workspace::Tmpfs,
                Backing::Disk => skillbox_sandbox::Workspace::Directory {
                    quota: LayerState::Partial {
                        reason: "a directory of the host, looked at while the run writes; a fast writer can overshoot"
                            .to_owned(),
                    },
                },
            },
            workspace_target: layout::ROOT.to_owned(),
            binds: places.chain(skills).chain(links).collect(),
            unconfined: if self.plain.is_some() {
                Unconfined::Allow
            } else {
                Unconfined::Refuse
            },
        }
    }
}

fn launch(
    spawner: &Spawner,
    spec: &JobSpec,
    plan: &LaunchPlan,
    placement: &Placement,
    workspace: &Workspace,
) -> Result<(Sandbox, Pipes), LocalError> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| LocalError::Pipe(error.into()));
    let (out_read, out_write) = pipe()?;
    let (err_read, err_write) = pipe()?;
    // Nothing to read is an immediate end, not a terminal and not a wait.
    let (stdin_read, stdin_write) = if spec.stdin.is_empty() {
        let null = File::open("/dev/null").map_err(LocalError::Pipe)?;
        (OwnedFd::from(null), None)
    } else {
        let (read, write) = pipe()?;
        (read, Some((write, spec.stdin.clone())))
    };
    let places = placement.places.iter().map(OwnedFd::as_fd);
    let skills = placement.skills.iter().map(|(_, snapshot)| snapshot.root());
    let links = placement.links.iter().map(|link| link.source.as_fd());
    let fds = LaunchFds {
        workspace: Some(workspace.mountable()),
        binds: places.chain(skills).chain(links).collect(),
        stdin: stdin_read.as_fd(),
        stdout: out_write.as_fd(),
        stderr: err_write.as_fd(),
    };
    let sandbox = spawner.launch(plan, &fds).map_err(LocalError::Launch)?;
    let pipes = Pipes {
        stdin: stdin_write,
        stdout: out_read,
        stderr: err_read,
        held: [out_write, err_write],
    };
    Ok((sandbox, pipes))
}

/// Whether scripts see mounts of their own, and so the workspace at its usual place.
fn shows_own_root(profile: &Profile) -> bool {
    profile.need(Layer::MountNamespace) != Need::Off
}

fn owner(facts: &HostFacts) -> Option<Owner> {
    facts.privileged.then_some(Owner {
        uid: facts.script.uid,
        gid: facts.script.gid,
    })
}
