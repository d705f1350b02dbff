//! Profiles: parses the YAML files, merges each with the profile that it extends, and checks the resulting [`Profile`].

mod check;
mod compiled;
mod diagnostics;
mod document;
mod duration;
#[cfg(test)]
mod filter_tests;
mod host_check;
mod merge;
mod merge_syscalls;
mod name_list;
mod network_section;
mod policy;
mod profiles;
mod shipped;
mod yaml;

pub use policy::{
    AllowedHost, Device, EmptyDirectory, EnvironmentPolicy, FilesystemPolicy, FixedFile, FixedVariable, MaskedPath,
    Need, NetworkPolicy, PassedVariable, Profile, ProfileLimits, SkillDirAccess, SymbolicLink, VisiblePath,
    WorkspaceBacking, WorkspacePolicy,
};
pub use profiles::Profiles;
