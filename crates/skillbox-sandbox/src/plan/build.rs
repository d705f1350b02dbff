//! Builds the ordered list of steps from the profile, the limits, the host facts and the job, without side effects.

use std::sync::Arc;

use skillbox_model::{Layer, LayerState, Limits};

use super::command::build_command;
use super::enforcement::assess_layers;
use super::error::PlanError;
use super::filesystem::{push_private_mounts, push_run_mounts, push_template};
use super::job::{Job, ListeningPorts, UnconfinedPolicy, WorkspaceSource};
use super::landlock::push_landlock;
use super::limits::{cgroup_limits, resource_limits};
use super::op::{ConfineOp, Namespace, PrepareOp, RunOp, SpawnOp};
use super::step::{Command, LaunchPlan};
use super::step_list::StepList;
use crate::cgroup::CgroupVersion;
use crate::host::{HostFacts, UidGid};
use crate::profile::{Need, NetworkPolicy, Profile};

/// The ids of the script inside its user namespace: an ordinary user.
pub const SANDBOX_IDS: UidGid = UidGid { uid: 1000, gid: 1000 };

/// The host name inside the sandbox.
pub const HOSTNAME: &str = "skillbox";

/// Plans one launch. The order in which this function adds the steps is the order in which they are applied.
pub fn plan(profile: &Profile, limits: &Limits, facts: &HostFacts, job: &Job) -> Result<LaunchPlan, PlanError> {
    if profile.is_unconfined() && job.unconfined == UnconfinedPolicy::Refuse {
        return Err(PlanError::UnconfinedRefused(profile.name.clone()));
    }
    let enforcement = assess_layers(profile, facts, job)?;
    let is_enforced = |layer: Layer| {
        matches!(
            enforcement.layers[&layer],
            LayerState::Enforced | LayerState::Partial { .. }
        )
    };
    check_job(job, is_enforced(Layer::MountNamespace))?;
    check_listening_ports(profile, job)?;
    let command = build_command(job)?;

    let mut steps = StepList::new(profile);
    if is_enforced(Layer::MountNamespace) {
        push_template(&mut steps, profile, facts, job, is_enforced(Layer::Proc));
    }
    let cgroup = cgroup_limits(profile, limits, facts, &is_enforced);
    let into_cgroup = cgroup.is_some_and(|cgroup| cgroup.version == CgroupVersion::V2);
    let cgroup_layers: Vec<Layer> = [Layer::Memory, Layer::Pids, Layer::Cpu]
        .into_iter()
        .filter(|layer| profile.need(*layer) != Need::Off)
        .collect();
    // Inside a user namespace a resource limit enforces `pids`, so a failure of the group ends the launch only if the
    // profile requires one of these layers.
    let layers_that_need_cgroup = [Layer::Memory, Layer::Cpu];
    if let Some(cgroup) = cgroup {
        steps.push_with_profile_need_for(&layers_that_need_cgroup, &cgroup_layers, SpawnOp::CreateCgroup(cgroup));
    }
    if is_enforced(Layer::NetworkNamespace) {
        let ports = job.listening_ports.as_ref();
        let loopback = profile.network == NetworkPolicy::Loopback || ports.is_some();
        steps.push_required(&[Layer::NetworkNamespace], SpawnOp::Network { loopback });
        if let Some(ports) = ports {
            steps.push_required(&[], SpawnOp::Listen(ports.clone()));
        }
    }
    if !is_enforced(Layer::MountNamespace) {
        steps.push_required(&[], SpawnOp::UseHostMounts);
    }
    let (namespaces, namespace_layers) = namespaces(&is_enforced);
    steps.push_required(
        &namespace_layers,
        SpawnOp::Clone {
            namespaces,
            into_cgroup,
        },
    );

    steps.push_required(&[], PrepareOp::NewSession);
    push_identity(&mut steps, facts, &is_enforced);
    steps.push_required(&[], PrepareOp::DieWithSpawner);
    if !is_enforced(Layer::PidNamespace) {
        steps.push_required(&[], PrepareOp::AdoptOrphans);
    }
    if is_enforced(Layer::CgroupNamespace) && into_cgroup {
        steps.push_with_profile_need(&[Layer::CgroupNamespace], PrepareOp::UnshareCgroupNamespace);
    }
    if is_enforced(Layer::UtsNamespace) {
        steps.push_required(&[Layer::UtsNamespace], PrepareOp::Hostname(HOSTNAME.to_owned()));
    }
    if is_enforced(Layer::MountNamespace) {
        push_private_mounts(&mut steps, profile, is_enforced(Layer::Proc));
    }
    if is_enforced(Layer::Capabilities) {
        steps.push_required(&[Layer::Capabilities], PrepareOp::EmptyBoundingSet);
        steps.push_required(&[], PrepareOp::Undumpable);
    }

    if is_enforced(Layer::MountNamespace) {
        push_run_mounts(&mut steps, limits, job)?;
    }
    steps.push_required(&[], RunOp::WorkingDirectory { path: job.cwd.clone() });
    if is_enforced(Layer::ResourceLimits) {
        steps.push_required(
            &[Layer::ResourceLimits],
            RunOp::ResourceLimits(resource_limits(limits, facts, is_enforced(Layer::Pids))),
        );
    }
    if is_enforced(Layer::Capabilities) {
        steps.push_required(&[Layer::Capabilities], ConfineOp::DropCapabilities);
    }
    if is_enforced(Layer::NoNewPrivileges) {
        steps.push_required(&[Layer::NoNewPrivileges], ConfineOp::NoNewPrivileges);
    }
    push_landlock(&mut steps, profile, facts, job, &is_enforced);
    steps.push_required(&[], RunOp::CloseDescriptors);
    if is_enforced(Layer::Seccomp) {
        let filter = profile.syscalls.filter();
        steps.push_required(
            &[Layer::Seccomp],
            ConfineOp::Seccomp {
                allowed: filter.allowed_count(),
                program: if refuses_allocation(facts, job) {
                    filter.program_without_allocation()
                } else {
                    filter.program().to_vec()
                },
            },
        );
    }
    if cgroup.is_some() && !into_cgroup {
        steps.push_with_profile_need_for(&layers_that_need_cgroup, &cgroup_layers, RunOp::EnterCgroup);
    }
    steps.push_required(&[], RunOp::Exec);
    Ok(LaunchPlan {
        profile: profile.name.clone(),
        steps: steps.into_steps()?,
        command,
        enforcement,
    })
}

impl LaunchPlan {
    /// Returns the same plan without a command.
    pub fn without_command(&self) -> Self {
        self.with_command(Command {
            argv: Vec::new(),
            env: Vec::new(),
        })
    }

    /// Returns the same plan with the command of another job, which must equal the planned job apart from `argv` and
    /// `env`.
    pub fn with_command_of(&self, job: &Job) -> Result<Self, PlanError> {
        Ok(self.with_command(build_command(job)?))
    }

    fn with_command(&self, command: Command) -> Self {
        Self {
            profile: self.profile.clone(),
            steps: Arc::clone(&self.steps),
            command,
            enforcement: self.enforcement.clone(),
        }
    }
}

fn namespaces(is_enforced: &impl Fn(Layer) -> bool) -> (Vec<Namespace>, Vec<Layer>) {
    [
        (Layer::UserNamespace, Namespace::User),
        (Layer::MountNamespace, Namespace::Mount),
        (Layer::PidNamespace, Namespace::Pid),
        (Layer::IpcNamespace, Namespace::Ipc),
        (Layer::UtsNamespace, Namespace::Uts),
        (Layer::CgroupNamespace, Namespace::Cgroup),
    ]
    .into_iter()
    .filter(|(layer, _)| is_enforced(*layer))
    .map(|(layer, namespace)| (namespace, layer))
    .unzip()
}

fn push_identity(steps: &mut StepList<'_>, facts: &HostFacts, is_enforced: &impl Fn(Layer) -> bool) {
    if is_enforced(Layer::UserNamespace) {
        steps.push_required(
            &[Layer::UserNamespace],
            PrepareOp::MapIds {
                inside: SANDBOX_IDS,
                outside: facts.script_ids,
            },
        );
        steps.push_required(&[Layer::UserNamespace], PrepareOp::BecomeUser(SANDBOX_IDS));
    } else if is_enforced(Layer::Capabilities) && facts.privileged {
        steps.push_required(&[Layer::Capabilities], PrepareOp::BecomeUser(facts.script_ids));
    }
}

/// Whether the filter refuses to allocate space without writing it: fallocate(2) takes 20 GiB in milliseconds, and only
/// a workspace with a file system of its own has a hard limit. A user without privileges gets the same filter for each
/// kind of workspace, so that one parked sandbox serves them all.
fn refuses_allocation(facts: &HostFacts, job: &Job) -> bool {
    !facts.privileged || matches!(job.workspace, WorkspaceSource::Directory { .. })
}

/// Refuses ports that the script could not reach, or that would collide.
fn check_listening_ports(profile: &Profile, job: &Job) -> Result<(), PlanError> {
    let Some(ports) = &job.listening_ports else {
        return Ok(());
    };
    let collides = ports.hosts.contains(&ports.proxy) || ports.hosts.contains(&ListeningPorts::DNS);
    if profile.network == NetworkPolicy::AllowList && !collides && ports.proxy != ListeningPorts::DNS {
        return Ok(());
    }
    Err(PlanError::InvalidJob {
        field: "listening_ports",
        message: format!(
            "the network of the profile {} is no allow-list, or a port is used twice; port {} is for names",
            profile.name,
            ListeningPorts::DNS
        ),
    })
}

fn check_job(job: &Job, has_mounts: bool) -> Result<(), PlanError> {
    let invalid = |field, message: String| Err(PlanError::InvalidJob { field, message });
    let targets = job.binds.iter().map(|bind| ("binds", bind.target.as_str()));
    let paths = [
        ("cwd", job.cwd.as_str()),
        ("workspace_target", job.workspace_target.as_str()),
    ];
    for (field, path) in paths.into_iter().chain(targets) {
        let is_normalized = path.starts_with('/')
            && !path.contains('\0')
            && (path == "/" || path[1..].split('/').all(|part| !matches!(part, "" | "." | "..")));
        if !is_normalized {
            return invalid(field, format!("{path:?} is not an absolute path without `.` and `..`"));
        }
    }
    if has_mounts && job.workspace_target == "/" {
        return invalid("workspace_target", "the workspace cannot be the root".to_owned());
    }
    if !has_mounts && !job.binds.is_empty() {
        return invalid("binds", "binds need a mount namespace".to_owned());
    }
    if let Some(skill) = &job.writable_skill
        && !job.binds.iter().any(|bind| bind.target == skill.target())
    {
        return invalid("writable_skill", format!("nothing is mounted at {}", skill.target()));
    }
    if !has_mounts && !matches!(job.workspace, WorkspaceSource::Directory { .. }) {
        let message = "a workspace with a file system of its own needs a mount namespace";
        return invalid("workspace", message.to_owned());
    }
    Ok(())
}
