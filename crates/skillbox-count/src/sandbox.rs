//! The cases `profile`, which reads a sandbox profile, and `plan`, which plans the launch of a sandbox.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use skillbox_sandbox::{
    Availability, Bind, BindAccess, BindKind, BindOwner, CgroupFacts, CgroupVersion, HostFacts, Job, LaunchPlan,
    MountApi, PathType, Profile, Profiles, UidGid, UnconfinedPolicy, WorkspaceSource, plan as plan_launch,
};

/// A profile of typical size.
const PROFILE_YAML: &str = "\
name: counted
extends: strict
description: A profile that a host could have
workspace:
  backing: disk
";

/// The number of launches that the case `plan` plans.
const PLAN_COUNT: usize = 20;

/// Reads a profile that extends a shipped one: parses its YAML, resolves `extends`, checks it, and compiles its filter.
pub(crate) fn run_profile_case() -> anyhow::Result<()> {
    let profiles = Profiles::shipped();
    let profile = counted_profile(&profiles);
    ensure!(profile.is_some(), "the profile was rejected");
    Ok(())
}

#[inline(never)]
fn counted_profile(profiles: &Profiles) -> Option<Profile> {
    profiles.check(Path::new("counted.yaml"), PROFILE_YAML).ok()
}

/// Plans the launch of a small job several times. Every run plans one launch.
pub(crate) fn run_plan_case() -> anyhow::Result<()> {
    let profiles = Profiles::shipped();
    let profile = profiles.get("default").context("the default profile is missing")?;
    let steps = counted_plan(profile, &host_facts(), &small_job());
    ensure!(steps >= PLAN_COUNT * 20, "only {steps} steps were planned");
    Ok(())
}

#[inline(never)]
fn counted_plan(profile: &Profile, facts: &HostFacts, job: &Job) -> usize {
    let plans = (0..PLAN_COUNT).filter_map(|_| plan_launch(profile, &profile.limits.default, facts, job).ok());
    plans.map(|plan: LaunchPlan| plan.steps.len()).sum()
}

/// Facts of a host with root and all kernel features. They are fixed, so that the count does not depend on this machine.
fn host_facts() -> HostFacts {
    HostFacts {
        kernel: "6.18.0".to_owned(),
        privileged: true,
        script_ids: UidGid {
            uid: 65_534,
            gid: 65_534,
        },
        namespaces: Availability::Available,
        proc: Availability::Available,
        mount_api: MountApi::Descriptors,
        landlock_abi: 7,
        seccomp: Availability::Available,
        cgroup: CgroupFacts {
            version: Some(CgroupVersion::V1),
            memory: Availability::Available,
            swap: Availability::Available,
            pids: Availability::Available,
            cpu_quota: Availability::Available,
            cpu_time: Availability::Available,
        },
        hard_limits: BTreeMap::new(),
        paths: [("/usr", PathType::Directory), ("/etc/ld.so.cache", PathType::File)]
            .map(|(path, path_type)| (path.to_owned(), path_type))
            .into(),
    }
}

fn small_job() -> Job {
    Job {
        argv: vec!["bash".into(), "-c".into(), "true".into()],
        env: (0..12)
            .map(|number| (format!("NAME_{number}").into(), "a value".into()))
            .collect(),
        cwd: "/workspace/skills/counted".to_owned(),
        workspace: WorkspaceSource::Tmpfs,
        workspace_target: "/workspace".to_owned(),
        binds: vec![Bind {
            target: "/workspace/skills/counted".to_owned(),
            kind: BindKind::Directory,
            access: BindAccess::ReadOnly,
            owner: BindOwner::Unchanged,
        }],
        unconfined: UnconfinedPolicy::Refuse,
        writable_skill: None,
        listening_ports: None,
    }
}
