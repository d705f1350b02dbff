//! A resolved profile as bytes, for the build to make and the program to carry.
//!
//! The shapes here leave out what the serialised forms for people have: flattened fields and tags in the middle, which
//! a format without names cannot read back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use skillbox_model::{Layer, Limits, ProfileName};

use super::policy::{
    EnvironmentPolicy, FilesystemPolicy, Need, NetworkPolicy, Profile, ProfileLimits, WorkspacePolicy,
};
use crate::seccomp::{ArgumentTest, Constant, Filter, SyscallAction, SyscallPolicy, SyscallRule};

/// The shape of the bytes.
#[derive(Serialize, Deserialize)]
pub(crate) struct Compiled {
    name: ProfileName,
    description: String,
    extends: Option<ProfileName>,
    layers: BTreeMap<Layer, Need>,
    container_layers: BTreeMap<Layer, Need>,
    filesystem: FilesystemPolicy,
    workspace: WorkspacePolicy,
    network: NetworkPolicy,
    rules: Vec<(Vec<String>, Action, String)>,
    filter: Filter,
    environment: EnvironmentPolicy,
    limits: (Limits, Duration),
}

#[derive(Serialize, Deserialize)]
enum Action {
    Allow,
    AllowIf(u8, ArgumentTest, Constant),
    Refuse(Constant),
}

/// The profile of these bytes; none when there is none in them.
pub(crate) fn decode(bytes: &[u8]) -> Option<Profile> {
    let compiled: Compiled = postcard::from_bytes(bytes).ok()?;
    Some(compiled.into())
}

impl From<Profile> for Compiled {
    fn from(profile: Profile) -> Self {
        let rules = profile.syscalls.rules().iter().map(|rule| {
            let action = match rule.action.clone() {
                SyscallAction::Allow => Action::Allow,
                SyscallAction::AllowIf {
                    argument,
                    test,
                    otherwise,
                } => Action::AllowIf(argument, test, otherwise),
                SyscallAction::Refuse { errno } => Action::Refuse(errno),
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
            environment: profile.environment,
            limits: (profile.limits.default, profile.limits.wall_max),
        }
    }
}

impl From<Compiled> for Profile {
    fn from(compiled: Compiled) -> Self {
        let rules = compiled.rules.into_iter().map(|(calls, action, reason)| SyscallRule {
            calls,
            action: match action {
                Action::Allow => SyscallAction::Allow,
                Action::AllowIf(argument, test, otherwise) => SyscallAction::AllowIf {
                    argument,
                    test,
                    otherwise,
                },
                Action::Refuse(errno) => SyscallAction::Refuse { errno },
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
            syscalls: SyscallPolicy::compiled(rules.collect(), compiled.filter),
            environment: compiled.environment,
            limits: ProfileLimits { default, wall_max },
        }
    }
}
