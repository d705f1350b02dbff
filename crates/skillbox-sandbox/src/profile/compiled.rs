//! The binary form of a resolved profile, which the build script writes and the program embeds.
//!
//! The format (postcard) does not store field names, so it cannot decode flattened fields and tagged enums. The types
//! in this file therefore have neither.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use skillbox_model::{Layer, Limits, ProfileName};

use super::policy::{
    AllowedHost, EnvironmentPolicy, FilesystemPolicy, Need, NetworkPolicy, Profile, ProfileLimits, WorkspacePolicy,
};
use crate::seccomp::{ArgumentTest, Condition, Constant, Filter, SyscallAction, SyscallPolicy, SyscallRule};

/// The binary form of a [`Profile`].
#[derive(Serialize, Deserialize)]
pub(crate) struct CompiledProfile {
    name: ProfileName,
    description: String,
    extends: Option<ProfileName>,
    layers: BTreeMap<Layer, Need>,
    container_layers: BTreeMap<Layer, Need>,
    filesystem: FilesystemPolicy,
    workspace: WorkspacePolicy,
    network: NetworkPolicy,
    allowed_hosts: Vec<AllowedHost>,
    rules: Vec<(Vec<String>, CompiledAction, String)>,
    filter: Filter,
    environment: EnvironmentPolicy,
    limits: (Limits, Duration),
}

#[derive(Serialize, Deserialize)]
enum CompiledAction {
    Allow,
    AllowIf(u8, ArgumentTest, Option<(u8, ArgumentTest)>, Constant),
    Refuse(Constant),
}

/// Decodes a profile; `None` if the bytes are not a compiled profile.
pub(crate) fn decode(bytes: &[u8]) -> Option<Profile> {
    let compiled: CompiledProfile = postcard::from_bytes(bytes).ok()?;
    Some(compiled.into())
}

impl From<Profile> for CompiledProfile {
    fn from(profile: Profile) -> Self {
        let rules = profile.syscalls.rules().iter().map(|rule| {
            let action = match rule.action.clone() {
                SyscallAction::Allow => CompiledAction::Allow,
                SyscallAction::AllowIf {
                    argument,
                    test,
                    or,
                    otherwise,
                } => CompiledAction::AllowIf(argument, test, or.map(|or| (or.argument, or.test)), otherwise),
                SyscallAction::Refuse { errno } => CompiledAction::Refuse(errno),
            };
            (rule.calls.clone(), action, rule.reason.clone())
        });
        Self {
            rules: rules.collect(),
            filter: profile.syscalls.filter().clone(),
            name: profile.name,
            description: profile.description,
            extends: profile.extends,
            layers: profile.layers,
            container_layers: profile.container_layers,
            filesystem: profile.filesystem,
            workspace: profile.workspace,
            network: profile.network,
            allowed_hosts: profile.allowed_hosts,
            environment: profile.environment,
            limits: (profile.limits.default, profile.limits.wall_max),
        }
    }
}

impl From<CompiledProfile> for Profile {
    fn from(compiled: CompiledProfile) -> Self {
        let rules = compiled.rules.into_iter().map(|(calls, action, reason)| SyscallRule {
            calls,
            action: match action {
                CompiledAction::Allow => SyscallAction::Allow,
                CompiledAction::AllowIf(argument, test, or, otherwise) => SyscallAction::AllowIf {
                    argument,
                    test,
                    or: or.map(|(argument, test)| Condition { argument, test }),
                    otherwise,
                },
                CompiledAction::Refuse(errno) => SyscallAction::Refuse { errno },
            },
            reason,
        });
        let (default, wall_max) = compiled.limits;
        Self {
            name: compiled.name,
            description: compiled.description,
            extends: compiled.extends,
            layers: compiled.layers,
            container_layers: compiled.container_layers,
            filesystem: compiled.filesystem,
            workspace: compiled.workspace,
            network: compiled.network,
            allowed_hosts: compiled.allowed_hosts,
            syscalls: SyscallPolicy::from_compiled(rules.collect(), compiled.filter),
            environment: compiled.environment,
            limits: ProfileLimits { default, wall_max },
        }
    }
}
