//! Profiles: policy as commented YAML, read, extended, checked, and resolved into [`Profile`].

mod catalogue;
mod check;
mod compiled;
mod document;
mod extend;
mod findings;
mod policy;
mod seconds;
mod shipped;
mod syscalls;
mod words;
mod yaml;

pub use catalogue::Profiles;
pub use policy::{
    Backing, Device, EnvironmentPolicy, FilesystemPolicy, MadeDirectory, MadeFile, MadeLink, MaskedPath, Need,
    NetworkPolicy, PassedVariable, Profile, ProfileLimits, SetVariable, VisiblePath, WorkspacePolicy,
};
