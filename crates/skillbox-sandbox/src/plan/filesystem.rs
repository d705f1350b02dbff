//! Plans the root directory of the script.

use skillbox_model::{Layer, Limits};

use super::error::PlanError;
use super::job::{Bind, BindKind, Job, WorkspaceSource};
use super::op::{PrepareOp, RunOp, TemplateOp, WorkspaceMount};
use super::step_list::StepList;
use crate::host::{HostFacts, PathType};
use crate::profile::{Profile, VisiblePath};

/// The size of the root filesystem, which contains only directories, links and small files.
const ROOT_BYTES: u64 = 1 << 20;
const ROOT_INODES: u64 = 1024;

/// The number of terminals of a sandbox: enough for scripts that drive several programs, and far below the 3,072 that
/// all sandboxes of a host have together (`kernel.pty.max` less `kernel.pty.reserve`).
const MAX_TERMINALS: u32 = 16;

/// Adds the steps that depend only on the profile, the host and the mount points of the job.
pub(super) fn push_template(steps: &mut StepList<'_>, profile: &Profile, facts: &HostFacts, job: &Job, has_proc: bool) {
    let mount = [Layer::MountNamespace];
    let policy = &profile.filesystem;
    steps.push_required(&mount, TemplateOp::MakeMountsPrivate);
    steps.push_required(
        &mount,
        TemplateOp::NewRoot {
            bytes: ROOT_BYTES,
            inodes: ROOT_INODES,
        },
    );
    for directory in &policy.directories {
        steps.push_required(
            &[],
            TemplateOp::Directory {
                path: directory.path.clone(),
            },
        );
    }
    for visible in &policy.visible {
        if let Some(op) = visible_path_op(visible, facts) {
            steps.push_required(&[], op);
        }
    }
    for link in &policy.links {
        steps.push_required(
            &[],
            TemplateOp::Link {
                path: link.path.clone(),
                target: link.target.clone(),
            },
        );
    }
    for file in &policy.files {
        steps.push_required(
            &[],
            TemplateOp::File {
                path: file.path.clone(),
                content: file.content.clone(),
            },
        );
    }
    steps.push_required(
        &mount,
        TemplateOp::Devices {
            names: policy.devices.iter().map(|device| device.name.clone()).collect(),
        },
    );
    if has_proc {
        steps.push_required(&[], TemplateOp::OuterProc);
    }
    let mount_points = std::iter::once((job.workspace_target.as_str(), BindKind::Directory))
        .chain(binds_outside_workspace(job).map(|bind| (bind.target.as_str(), bind.kind)));
    for (path, kind) in mount_points {
        steps.push_required(
            &[],
            TemplateOp::MountPoint {
                path: path.to_owned(),
                kind,
            },
        );
    }
    steps.push_required(&mount, TemplateOp::MakeRootReadOnly);
    steps.push_required(&mount, TemplateOp::PivotRoot);
}

/// Adds the mounts that each sandbox has for itself and that do not depend on its job.
pub(super) fn push_private_mounts(steps: &mut StepList<'_>, profile: &Profile, has_proc: bool) {
    let policy = &profile.filesystem;
    steps.push_required(
        &[],
        PrepareOp::SharedMemory {
            bytes: policy.shm.bytes(),
        },
    );
    if policy.devices.iter().any(|device| device.name == "pts") {
        // Preferred: without it, scripts run as they do under a profile without terminals.
        steps.push_with_profile_need(&[], PrepareOp::Terminals { max: MAX_TERMINALS });
    }
    if has_proc {
        steps.push_with_profile_need(&[Layer::Proc], PrepareOp::Proc);
        for mask in &policy.masked {
            steps.push_with_profile_need(
                &[Layer::Proc],
                PrepareOp::Mask {
                    path: mask.path.clone(),
                },
            );
        }
    }
}

/// Adds the mounts whose descriptors the launch passes.
pub(super) fn push_run_mounts(steps: &mut StepList<'_>, limits: &Limits, job: &Job) -> Result<(), PlanError> {
    let source = match job.workspace {
        WorkspaceSource::Tmpfs => WorkspaceMount::Tmpfs,
        WorkspaceSource::Image | WorkspaceSource::LargerImage { .. } => WorkspaceMount::Image,
        WorkspaceSource::Directory { .. } => WorkspaceMount::Directory,
    };
    steps.push_required(
        &[],
        RunOp::MountWorkspace {
            target: job.workspace_target.clone(),
            source,
        },
    );
    if let Some(skill) = &job.writable_skill {
        let directory = skill.directory.clone();
        steps.push_with_profile_need(&[], RunOp::OpenSkillLayers { directory });
    }
    for (index, bind) in job.binds.iter().enumerate() {
        let index = u16::try_from(index).map_err(|_| PlanError::InvalidJob {
            field: "binds",
            message: format!("{} binds are too many: at most 65536 are supported", job.binds.len()),
        })?;
        let op = RunOp::BindDescriptor {
            index,
            target: bind.target.clone(),
            kind: bind.kind,
            access: bind.access,
            owner: bind.owner,
        };
        steps.push_required(&[], op);
    }
    if let Some(skill) = &job.writable_skill {
        let op = RunOp::MakeSkillWritable {
            target: skill.target(),
            name: skill.name.clone(),
            method: skill.method,
            max_copy_bytes: limits.workspace.bytes(),
        };
        // Preferred: without it the skill stays read-only, and the report says so.
        steps.push_with_profile_need(&[], op);
    }
    Ok(())
}

/// The binds whose mount point is in the root. The mount point of any other bind is found or created in the workspace.
pub(super) fn binds_outside_workspace(job: &Job) -> impl Iterator<Item = &Bind> {
    let workspace = format!("{}/", job.workspace_target);
    job.binds
        .iter()
        .filter(move |bind| !bind.target.starts_with(&workspace))
}

/// The operation that makes a path of the host visible; `None` for an optional path that is missing. A required path
/// that is missing is planned too, so that the launch fails and names the path.
fn visible_path_op(visible: &VisiblePath, facts: &HostFacts) -> Option<TemplateOp> {
    let path = visible.path.clone();
    let kind = match facts.paths.get(&visible.path) {
        Some(PathType::Link(target)) => {
            let target = target.clone();
            return Some(TemplateOp::Link { path, target });
        }
        Some(PathType::Directory) => BindKind::Directory,
        Some(PathType::File) => BindKind::File,
        None if visible.optional => return None,
        None => BindKind::Directory,
    };
    Some(TemplateOp::BindHost {
        path,
        kind,
        optional: visible.optional,
    })
}
