//! From profile, limits, host and job to the ordered list of steps. Nothing is looked up and nothing is done here.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use skillbox_model::{ErrorCode, Layer, LayerState, Limits, ProfileName};

use super::enforcement;
use super::job::{Job, Unconfined, Workspace};
use super::op::{CgroupLimits, Command, Ids, LaunchPlan, Namespace, Op, Phase, Resource, ResourceLimit, Step};
use super::root;
use crate::host::HostFacts;
use crate::profile::{Need, NetworkPolicy, Profile};

/// The ids inside: an ordinary user.
pub const INSIDE: Ids = Ids { uid: 1000, gid: 1000 };

/// The host name inside.
pub const HOSTNAME: &str = "skillbox";

/// Why a run is refused before anything is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// This host cannot give a layer that the profile requires.
    #[error("profile {profile:?} requires {layer}, which this host cannot give: {reason}", profile = profile.as_str())]
    Isolation {
        /// The profile.
        profile: ProfileName,
        /// The layer.
        layer: Layer,
        /// The cause.
        reason: String,
        /// What to do about it.
        fix: String,
    },
    /// The profile isolates nothing, and the host does not allow that.
    #[error("profile {profile:?} isolates nothing, and this host does not allow it", profile = .0.as_str())]
    Unconfined(ProfileName),
    /// The job cannot be run like that.
    #[error("{field}: {message}")]
    Job {
        /// The field of the job.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
}

impl PlanError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Isolation { .. } => ErrorCode::IsolationUnavailable,
            Self::Unconfined(_) => ErrorCode::ProfileUnknown,
            Self::Job { .. } => ErrorCode::InvalidRequest,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Isolation { fix, .. } => Some(fix.clone()),
            Self::Unconfined(_) => Some("allow unconfined runs on this host, or use another profile".to_owned()),
            Self::Job { .. } => None,
        }
    }
}

/// The list under construction.
pub(super) struct Steps<'a> {
    profile: &'a Profile,
    phase: Phase,
    list: Vec<Step>,
}

impl Steps<'_> {
    /// A step that must succeed.
    pub fn must(&mut self, layers: &[Layer], op: Op) {
        self.push(layers, Need::Required, op);
    }

    /// A step that may fail when none of its layers is required.
    pub fn as_needed(&mut self, layers: &[Layer], op: Op) {
        let required = layers.iter().any(|layer| self.profile.need(*layer) == Need::Required);
        self.push(layers, if required { Need::Required } else { Need::Preferred }, op);
    }

    fn push(&mut self, layers: &[Layer], need: Need, op: Op) {
        let number = u16::try_from(self.list.len() + 1).unwrap_or(u16::MAX);
        self.list.push(Step {
            number,
            phase: self.phase,
            layers: layers.to_vec(),
            need,
            op,
        });
    }
}

/// Plans one launch, or says why it is refused.
pub fn plan(profile: &Profile, limits: &Limits, facts: &HostFacts, job: &Job) -> Result<LaunchPlan, PlanError> {
    if profile.is_unconfined() && job.unconfined == Unconfined::Refuse {
        return Err(PlanError::Unconfined(profile.name.clone()));
    }
    let enforcement = enforcement::settle(profile, facts, job)?;
    let asked = |layer: Layer| {
        matches!(
            enforcement.layers[&layer],
            LayerState::Enforced | LayerState::Partial { .. }
        )
    };
    check(job, asked(Layer::MountNamespace))?;
    let command = command(job)?;

    let mut steps = Steps {
        profile,
        phase: Phase::Template,
        list: Vec::new(),
    };
    if asked(Layer::MountNamespace) {
        root::skeleton(&mut steps, profile, facts, job, asked(Layer::Proc));
    }
    steps.phase = Phase::Spawn;
    let cgroup = cgroup_limits(profile, limits, facts, &asked);
    let into_cgroup = cgroup.is_some_and(|cgroup| cgroup.version == super::op::CgroupVersion::V2);
    let counted: Vec<Layer> = [Layer::Memory, Layer::Pids, Layer::Cpu]
        .into_iter()
        .filter(|layer| profile.need(*layer) != Need::Off)
        .collect();
    if let Some(cgroup) = cgroup {
        // The count of processes does not depend on the group inside a user namespace.
        steps.as_needed(
            &[Layer::Memory, Layer::Cpu].map(|layer| layer),
            Op::CreateCgroup(cgroup),
        );
        if let Some(step) = steps.list.last_mut() {
            step.layers = counted.clone();
        }
    }
    if asked(Layer::NetworkNamespace) {
        let loopback = profile.network == NetworkPolicy::Loopback;
        steps.must(&[Layer::NetworkNamespace], Op::Network { loopback });
    }
    if !asked(Layer::MountNamespace) {
        steps.must(&[], Op::HostView);
    }
    let (namespaces, namespace_layers) = namespaces(&asked);
    steps.must(
        &namespace_layers,
        Op::Clone {
            namespaces,
            into_cgroup,
        },
    );

    steps.phase = Phase::Prepare;
    steps.must(&[], Op::NewSession);
    identity(&mut steps, facts, &asked);
    steps.must(&[], Op::DieWithSpawner);
    if !asked(Layer::PidNamespace) {
        steps.must(&[], Op::AdoptOrphans);
    }
    if asked(Layer::CgroupNamespace) && into_cgroup {
        steps.as_needed(&[Layer::CgroupNamespace], Op::RootCgroupNamespace);
    }
    if asked(Layer::UtsNamespace) {
        steps.must(&[Layer::UtsNamespace], Op::Hostname(HOSTNAME.to_owned()));
    }
    if asked(Layer::MountNamespace) {
        root::private_mounts(&mut steps, profile, asked(Layer::Proc));
    }
    if asked(Layer::Capabilities) {
        steps.must(&[Layer::Capabilities], Op::EmptyBoundingSet);
        steps.must(&[], Op::Undumpable);
    }

    steps.phase = Phase::Release;
    if asked(Layer::MountNamespace) {
        root::complete(&mut steps, job);
    }
    steps.must(&[], Op::WorkingDirectory { path: job.cwd.clone() });
    if asked(Layer::ResourceLimits) {
        steps.must(
            &[Layer::ResourceLimits],
            Op::ResourceLimits(resource_limits(limits, facts, asked(Layer::Pids))),
        );
    }
    if asked(Layer::Capabilities) {
        steps.must(&[Layer::Capabilities], Op::DropCapabilities);
    }
    if asked(Layer::NoNewPrivileges) {
        steps.must(&[Layer::NoNewPrivileges], Op::NoNewPrivileges);
    }
    landlock(&mut steps, profile, facts, job, &asked);
    steps.must(&[], Op::CloseDescriptors);
    if asked(Layer::Seccomp) {
        let filter = profile.syscalls.filter();
        let allowed = u16::try_from(filter.allowed()).unwrap_or(u16::MAX);
        steps.must(
            &[Layer::Seccomp],
            Op::Seccomp {
                allowed,
                program: filter.program().to_vec(),
            },
        );
    }
    if cgroup.is_some() && !into_cgroup {
        steps.as_needed(&[Layer::Memory, Layer::Cpu], Op::EnterCgroup);
        if let Some(step) = steps.list.last_mut() {
            step.layers = counted;
        }
    }
    steps.must(&[], Op::Exec);
    Ok(LaunchPlan {
        profile: profile.name.clone(),
        steps: steps.list.into(),
        command,
        enforcement,
    })
}

impl LaunchPlan {
    /// The same plan for no command yet.
    pub fn without_command(&self) -> Self {
        Self {
            profile: self.profile.clone(),
            steps: Arc::clone(&self.steps),
            command: Command {
                argv: Vec::new(),
                env: Vec::new(),
            },
            enforcement: self.enforcement.clone(),
        }
    }

    /// The same plan for another command: all but `argv` and `env` of the job has to be as it was when this was planned.
    pub fn with_command_of(&self, job: &Job) -> Result<Self, PlanError> {
        Ok(Self {
            profile: self.profile.clone(),
            steps: Arc::clone(&self.steps),
            command: command(job)?,
            enforcement: self.enforcement.clone(),
        })
    }
}

fn namespaces(asked: &impl Fn(Layer) -> bool) -> (Vec<Namespace>, Vec<Layer>) {
    [
        (Layer::UserNamespace, Namespace::User),
        (Layer::MountNamespace, Namespace::Mount),
        (Layer::PidNamespace, Namespace::Pid),
        (Layer::IpcNamespace, Namespace::Ipc),
        (Layer::UtsNamespace, Namespace::Uts),
        (Layer::CgroupNamespace, Namespace::Cgroup),
    ]
    .into_iter()
    .filter(|(layer, _)| asked(*layer))
    .map(|(layer, namespace)| (namespace, layer))
    .unzip()
}

fn identity(steps: &mut Steps<'_>, facts: &HostFacts, asked: &impl Fn(Layer) -> bool) {
    if asked(Layer::UserNamespace) {
        steps.must(
            &[Layer::UserNamespace],
            Op::MapIds {
                inside: INSIDE,
                outside: facts.script,
            },
        );
        steps.must(&[Layer::UserNamespace], Op::BecomeUser(INSIDE));
    } else if asked(Layer::Capabilities) && facts.privileged {
        steps.must(&[Layer::Capabilities], Op::BecomeUser(facts.script));
    }
}

fn cgroup_limits(
    profile: &Profile,
    limits: &Limits,
    facts: &HostFacts,
    asked: &impl Fn(Layer) -> bool,
) -> Option<CgroupLimits> {
    let version = facts.cgroup.version?;
    let memory = (asked(Layer::Memory) && facts.cgroup.memory.is_available()).then(|| limits.memory.bytes());
    let pids = (asked(Layer::Pids) && facts.cgroup.pids.is_available()).then_some(limits.pids);
    let quota = limits
        .cpu_quota_millis
        .filter(|_| asked(Layer::Cpu) && facts.cgroup.cpu_quota.is_available());
    let count_cpu = profile.need(Layer::Cpu) != Need::Off && facts.cgroup.cpu_time.is_available();
    let any = memory.is_some() || pids.is_some() || quota.is_some() || count_cpu;
    any.then_some(CgroupLimits {
        version,
        memory,
        pids,
        cpu_quota_millis: quota,
        count_cpu,
    })
}

fn resource_limits(limits: &Limits, facts: &HostFacts, count_processes: bool) -> Vec<ResourceLimit> {
    // A core limit of 1 also keeps piped core handlers from being started; 0 does not.
    let mut list = vec![
        (Resource::Core, 1),
        // The group's own deadline comes first; this one catches a single process should the watchdog fail.
        (Resource::Cpu, limits.cpu.as_secs().saturating_add(1)),
        (Resource::FileSize, limits.file.bytes()),
        (Resource::LockedMemory, 8 << 20),
        (Resource::MessageQueue, 800 << 10),
        (Resource::Nice, 0),
        (Resource::OpenFiles, limits.open_files),
        (Resource::RealTimePriority, 0),
        (Resource::PendingSignals, 1024),
    ];
    if count_processes {
        // The reaper counts as one. Where a control group counts too, it comes first: it tells that it was hit.
        let room = if facts.cgroup.pids.is_available() { 16 } else { 0 };
        list.push((Resource::Processes, limits.pids.saturating_add(1 + room)));
    }
    let within_hard = |(resource, limit): (Resource, u64)| ResourceLimit {
        resource,
        limit: facts.hard_limits.get(&resource).map_or(limit, |hard| limit.min(*hard)),
    };
    list.into_iter().map(within_hard).collect()
}

fn landlock(steps: &mut Steps<'_>, profile: &Profile, facts: &HostFacts, job: &Job, asked: &impl Fn(Layer) -> bool) {
    let layers: Vec<Layer> = [Layer::LandlockFiles, Layer::LandlockNetwork, Layer::LandlockScope]
        .into_iter()
        .filter(|layer| asked(*layer))
        .collect();
    if layers.is_empty() {
        return;
    }
    let inside = asked(Layer::MountNamespace);
    let files =
        asked(Layer::LandlockFiles).then(|| root::landlock_rules(profile, facts, job, inside, asked(Layer::Proc)));
    let op = Op::Landlock {
        abi: facts.landlock_abi,
        files,
        refuse_tcp: asked(Layer::LandlockNetwork),
        scope: asked(Layer::LandlockScope),
    };
    steps.as_needed(&layers, op);
}

fn check(job: &Job, mounts: bool) -> Result<(), PlanError> {
    let wrong = |field, message: String| Err(PlanError::Job { field, message });
    let targets = job.binds.iter().map(|bind| ("binds", bind.target.as_str()));
    let paths = [
        ("cwd", job.cwd.as_str()),
        ("workspace_target", job.workspace_target.as_str()),
    ];
    for (field, path) in paths.into_iter().chain(targets) {
        let plain = path.starts_with('/')
            && !path.contains('\0')
            && (path == "/" || path[1..].split('/').all(|part| !matches!(part, "" | "." | "..")));
        if !plain {
            return wrong(field, format!("{path:?} is not an absolute path without `.` and `..`"));
        }
    }
    if mounts && job.workspace_target == "/" {
        return wrong("workspace_target", "the workspace cannot be the root".to_owned());
    }
    if !mounts && !job.binds.is_empty() {
        return wrong("binds", "nothing can be mounted without a mount namespace".to_owned());
    }
    if !mounts && job.workspace == Workspace::Tmpfs {
        return wrong(
            "workspace",
            "a workspace in memory cannot be shown without a mount namespace".to_owned(),
        );
    }
    Ok(())
}

fn command(job: &Job) -> Result<Command, PlanError> {
    if job.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(PlanError::Job {
            field: "argv",
            message: "there is no program to start".to_owned(),
        });
    }
    let text = |field, bytes: &[u8]| {
        CString::new(bytes).map_err(|_| PlanError::Job {
            field,
            message: "a NUL cannot be passed".to_owned(),
        })
    };
    let argv = job
        .argv
        .iter()
        .map(|word| text("argv", word.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut env: Vec<(&OsStr, CString)> = Vec::with_capacity(job.env.len());
    for (name, value) in &job.env {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(PlanError::Job {
                field: "env",
                message: format!("{name:?} is not a name for a variable"),
            });
        }
        let mut pair = name.as_bytes().to_vec();
        pair.push(b'=');
        pair.extend_from_slice(value.as_bytes());
        let pair = text("env", &pair)?;
        match env.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = pair,
            None => env.push((name, pair)),
        }
    }
    Ok(Command {
        argv,
        env: env.into_iter().map(|(_, pair)| pair).collect(),
    })
}
