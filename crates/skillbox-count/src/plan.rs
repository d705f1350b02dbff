//! Cases for the sandbox: from a profile to the steps of a launch.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use skillbox_sandbox::{
    Access, Availability, Bind, BindKind, CgroupFacts, CgroupVersion, HostFacts, Ids, Job, LaunchPlan, MountApi,
    Ownership, PathFact, Profile, Profiles, Unconfined, WorkspaceSource, plan as plan_launch,
};

/// A profile of usual size.
const PROFILE_YAML: &str = "\
name: counted
extends: strict
description: A profile that a host could have
workspace:
  backing: disk
";

const PLAN_COUNT: usize = 20;

/// Reads a profile that extends a shipped one: YAML, `extends`, checks, filter.
pub(crate) fn profile() -> anyhow::Result<()> {
    let profiles = Profiles::shipped();
    let read = counted_profile(&profiles);
    ensure!(read.is_some(), "the profile was refused");
    Ok(())
}

#[inline(never)]
fn counted_profile(profiles: &Profiles) -> Option<Profile> {
    profiles.check(Path::new("counted.yaml"), PROFILE_YAML).ok()
}

/// Plans the launch of a small job, as every run does.
pub(crate) fn plan() -> anyhow::Result<()> {
    let profiles = Profiles::shipped();
    let profile = profiles.get("default").context("the default profile is shipped")?;
    let steps = counted_plan(profile, &facts(), &job());
    ensure!(steps >= PLAN_COUNT * 20, "only {steps} steps were planned");
    Ok(())
}

#[inline(never)]
fn counted_plan(profile: &Profile, facts: &HostFacts, job: &Job) -> usize {
    let plans = (0..PLAN_COUNT).filter_map(|_| plan_launch(profile, &profile.limits.default, facts, job).ok());
    plans.map(|plan: LaunchPlan| plan.steps.len()).sum()
}

/// Facts of a complete host with root, independent of this machine.
fn facts() -> HostFacts {
    HostFacts {
        kernel: "6.18.0".to_owned(),
        privileged: true,
        script: Ids {
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
        paths: [("/usr", PathFact::Directory), ("/etc/ld.so.cache", PathFact::File)]
            .map(|(path, fact)| (path.to_owned(), fact))
            .into(),
    }
}

fn job() -> Job {
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
            access: Access::ReadOnly,
            owner: Ownership::Kept,
        }],
        unconfined: Unconfined::Refuse,
    }
}
