//! The root file system of a sandbox: a template, built once per profile, and the mounts that each sandbox adds to its
//! copy.

mod overlay;
mod sandbox_mounts;
mod skill_copy;
mod target;
mod template_root;
mod workspace;
mod writable_skill;

pub(crate) use sandbox_mounts::{
    cover_outer_proc, mask_file, mount_fresh_proc, mount_shared_memory, mount_terminals, open_mount_target,
    run_mount_attributes,
};
pub(crate) use template_root::{DeviceFilesystem, HOST_BIND_ATTRIBUTES, TemplateRoot};
pub(crate) use workspace::create_workspace_tmpfs;
pub(crate) use writable_skill::make_skill_writable;
