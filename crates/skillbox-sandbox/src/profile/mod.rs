//! Profiles: policy as commented YAML, read, extended, checked, and resolved into [`Profile`].

mod check;
mod compiled;
mod diagnostics;
mod document;
mod extend;
#[cfg(test)]
mod filter_tests;
mod name_list;
mod policy;
mod profiles;
mod seconds;
mod shipped;
mod syscalls;
mod yaml;

pub use policy::{
    Backing, Device, EmptyDirectory, EnvironmentPolicy, FilesystemPolicy, FixedFile, MaskedPath, Need, NetworkPolicy,
    PassedVariable, Profile, ProfileLimits, SetVariable, SymbolicLink, VisiblePath, WorkspacePolicy,
};
pub use profiles::Profiles;
