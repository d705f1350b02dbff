//! The steps that make the script's root, and the Landlock rules that say the same again.

use skillbox_model::Layer;

use super::build::Steps;
use super::job::{Access, Bind, BindKind, Job, Workspace};
use super::op::{FileRights, LandlockRule, Op};
use crate::host::{HostFacts, PathFact};
use crate::profile::{Backing, Profile, VisiblePath};

/// The root holds directories, links and small files only.
const ROOT_BYTES: u64 = 1 << 20;
const ROOT_INODES: u64 = 1024;

/// The part that depends on the profile and the host alone.
pub(super) fn skeleton(steps: &mut Steps<'_>, profile: &Profile, facts: &HostFacts, job: &Job, proc: bool) {
    let mount = [Layer::MountNamespace];
    let points = std::iter::once((job.workspace_target.as_str(), BindKind::Directory))
        .chain(outside_workspace(job).map(|bind| (bind.target.as_str(), bind.kind)));
    let policy = &profile.filesystem;
    steps.must(&mount, Op::PrivateMounts);
    steps.must(
        &mount,
        Op::NewRoot {
            bytes: ROOT_BYTES,
            inodes: ROOT_INODES,
        },
    );
    for directory in &policy.directories {
        steps.must(
            &[],
            Op::Directory {
                path: directory.path.clone(),
            },
        );
    }
    for visible in &policy.visible {
        if let Some(op) = show(visible, facts) {
            steps.must(&[], op);
        }
    }
    for link in &policy.links {
        steps.must(
            &[],
            Op::Link {
                path: link.path.clone(),
                target: link.target.clone(),
            },
        );
    }
    for file in &policy.files {
        steps.must(
            &[],
            Op::File {
                path: file.path.clone(),
                content: file.content.clone(),
            },
        );
    }
    steps.must(
        &mount,
        Op::Devices {
            names: policy.devices.iter().map(|device| device.name.clone()).collect(),
        },
    );
    if proc {
        steps.must(&[], Op::OuterProc);
    }
    for (path, kind) in points {
        steps.must(
            &[],
            Op::MountPoint {
                path: path.to_owned(),
                kind,
            },
        );
    }
    steps.must(&mount, Op::SealRoot);
    steps.must(&mount, Op::EnterRoot);
}

/// What every run mounts for itself, whatever it runs.
pub(super) fn private_mounts(steps: &mut Steps<'_>, profile: &Profile, proc: bool) {
    let policy = &profile.filesystem;
    steps.must(
        &[],
        Op::SharedMemory {
            bytes: policy.shm.bytes(),
        },
    );
    if proc {
        steps.as_needed(&[Layer::Proc], Op::Proc);
        for mask in &policy.masked {
            steps.as_needed(
                &[Layer::Proc],
                Op::Mask {
                    path: mask.path.clone(),
                },
            );
        }
    }
}

/// Binds below the workspace find or make their places in it; the others need theirs in the root.
fn outside_workspace(job: &Job) -> impl Iterator<Item = &Bind> {
    let workspace = format!("{}/", job.workspace_target);
    job.binds
        .iter()
        .filter(move |bind| !bind.target.starts_with(&workspace))
}

/// The part that depends on the run.
pub(super) fn complete(steps: &mut Steps<'_>, job: &Job) {
    let backing = match job.workspace {
        Workspace::Tmpfs => Backing::Tmpfs,
        Workspace::Directory { .. } => Backing::Disk,
    };
    steps.must(
        &[],
        Op::MountWorkspace {
            target: job.workspace_target.clone(),
            backing,
        },
    );
    for (index, bind) in job.binds.iter().enumerate() {
        let op = Op::BindDescriptor {
            index: u16::try_from(index).unwrap_or(u16::MAX),
            target: bind.target.clone(),
            kind: bind.kind,
            access: bind.access,
            owner: bind.owner,
        };
        steps.must(&[], op);
    }
}

/// A required path that is missing is still planned: the launch then fails and names it.
fn show(visible: &VisiblePath, facts: &HostFacts) -> Option<Op> {
    let path = visible.path.clone();
    match facts.paths.get(&visible.path) {
        Some(PathFact::Link(target)) => Some(Op::Link {
            path,
            target: target.clone(),
        }),
        Some(PathFact::Directory) => Some(Op::BindHost {
            path,
            kind: BindKind::Directory,
            optional: visible.optional,
        }),
        Some(PathFact::File) => Some(Op::BindHost {
            path,
            kind: BindKind::File,
            optional: visible.optional,
        }),
        None if visible.optional => None,
        None => Some(Op::BindHost {
            path,
            kind: BindKind::Directory,
            optional: false,
        }),
    }
}

/// The same view once more, enforced below the mounts.
pub(super) fn landlock_rules(
    profile: &Profile,
    facts: &HostFacts,
    job: &Job,
    inside: bool,
    proc: bool,
) -> Vec<LandlockRule> {
    let rule = |path: &str, rights| LandlockRule {
        path: path.to_owned(),
        rights,
    };
    let mut rules = Vec::new();
    if inside {
        rules.push(rule("/", FileRights::List));
    }
    // Inside, /etc holds nothing but what the profile put there: one rule covers it.
    let covered = |path: &str| inside && path.starts_with("/etc/");
    for visible in &profile.filesystem.visible {
        let there = matches!(
            facts.paths.get(&visible.path),
            Some(PathFact::Directory | PathFact::File)
        );
        if there && !covered(&visible.path) {
            rules.push(rule(&visible.path, FileRights::ReadExecute));
        }
    }
    if inside {
        rules.push(rule("/etc", FileRights::Read));
        let made = profile.filesystem.files.iter().filter(|file| !covered(&file.path));
        rules.extend(made.map(|file| rule(&file.path, FileRights::Read)));
        rules.push(rule("/dev", FileRights::Devices));
        rules.push(rule("/dev/shm", FileRights::Everything));
        if proc {
            rules.push(rule("/proc", FileRights::Read));
        }
    } else {
        let devices = profile.filesystem.devices.iter();
        rules.extend(devices.map(|device| rule(&format!("/dev/{}", device.name), FileRights::Devices)));
    }
    for bind in outside_workspace(job) {
        let rights = match bind.access {
            Access::ReadOnly => FileRights::ReadExecute,
            Access::ReadWrite => FileRights::Everything,
        };
        rules.push(rule(&bind.target, rights));
    }
    rules.push(rule(&job.workspace_target, FileRights::Everything));
    rules
}
