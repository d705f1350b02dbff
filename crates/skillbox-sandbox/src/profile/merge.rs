//! Merges a document with the profile that it extends.

use skillbox_model::{Layer, Limits, ProfileName};

use super::diagnostics::Diagnostics;
use super::document::{EnvironmentSection, FilesystemSection, LimitsSection, ProfileDocument, WorkspaceSection};
use super::duration::ParsedDuration;
use super::merge_syscalls::merge_syscalls;
use super::network_section::merge_allowed_hosts;
use super::policy::{
    Device, EmptyDirectory, EnvironmentPolicy, FilesystemPolicy, FixedFile, FixedVariable, MaskedPath, NetworkPolicy,
    PassedVariable, Profile, ProfileLimits, SkillDirAccess, SymbolicLink, VisiblePath, WorkspaceBacking,
    WorkspacePolicy,
};
use super::yaml::{self, Located, Location};

/// Builds the complete profile: what the document sets, and the rest from the parent. Returns `None` if the name is
/// invalid, a limit is missing or the system call rules do not compile; the diagnostics then contain the reason.
pub(super) fn merge_with_parent(
    document: &ProfileDocument,
    parent: Option<&Profile>,
    diagnostics: &mut Diagnostics,
) -> Option<Profile> {
    let name_location = yaml::location(&document.name);
    let name = match ProfileName::parse(document.name.value.clone()) {
        Ok(name) => name,
        Err(error) => {
            diagnostics.add(name_location, "profile_name", error.to_string());
            return None;
        }
    };
    let mut layers = parent.map(|parent| parent.layers.clone()).unwrap_or_default();
    layers.extend(document.layers.iter().map(|(layer, need)| (*layer, need.value)));
    let mut container_layers = parent.map(|parent| parent.container_layers.clone()).unwrap_or_default();
    container_layers.extend(
        document
            .container_layers
            .iter()
            .map(|(layer, need)| (*layer, need.value)),
    );
    let missing: Vec<&str> = Layer::ALL
        .iter()
        .filter(|layer| !layers.contains_key(layer))
        .map(|layer| layer.as_str())
        .collect();
    if !missing.is_empty() {
        let message = format!(
            "a profile without `extends` must name every layer; missing: {}",
            missing.join(", ")
        );
        diagnostics.add(name_location, "profile_incomplete", message);
    }
    let description = document
        .description
        .as_ref()
        .map(|description| description.value.clone())
        .or_else(|| parent.map(|parent| parent.description.clone()))
        .unwrap_or_default();
    let limits = merge_limits(document.limits.as_ref(), parent, name_location, diagnostics)?;
    Some(Profile {
        name,
        description,
        extends: parent.map(|parent| parent.name.clone()),
        layers,
        container_layers,
        filesystem: merge_filesystem(document.filesystem.as_ref(), parent, diagnostics),
        workspace: merge_workspace(document.workspace.as_ref(), parent),
        network: document
            .network
            .as_ref()
            .map(|network| network.value.mode)
            .or_else(|| parent.map(|parent| parent.network))
            .unwrap_or(NetworkPolicy::None),
        allowed_hosts: merge_allowed_hosts(
            document.network.as_ref().map(|network| &network.value),
            parent.map(|parent| parent.allowed_hosts.as_slice()).unwrap_or_default(),
            diagnostics,
        ),
        syscalls: merge_syscalls(document.syscalls.as_ref(), parent, diagnostics)?,
        environment: merge_environment(document.environment.as_ref(), parent, diagnostics),
        limits,
    })
}

fn merge_workspace(section: Option<&WorkspaceSection>, parent: Option<&Profile>) -> WorkspacePolicy {
    let inherited = parent.map_or(
        WorkspacePolicy {
            backing: WorkspaceBacking::Tmpfs,
            skill_dir: SkillDirAccess::ReadOnly,
        },
        |parent| parent.workspace,
    );
    section.map_or(inherited, |section| WorkspacePolicy {
        backing: section.backing.unwrap_or(inherited.backing),
        skill_dir: section.skill_dir.unwrap_or(inherited.skill_dir),
    })
}

/// Replaces the entry with the same key, or appends the entry.
fn replace_or_push<T>(list: &mut Vec<T>, key: impl Fn(&T) -> &str, entry: T) {
    match list.iter().position(|old| key(old) == key(&entry)) {
        Some(index) => list[index] = entry,
        None => list.push(entry),
    }
}

fn merge_filesystem(
    document: Option<&FilesystemSection>,
    parent: Option<&Profile>,
    diagnostics: &mut Diagnostics,
) -> FilesystemPolicy {
    let mut policy = parent.map(|parent| parent.filesystem.clone()).unwrap_or_default();
    let Some(document) = document else { return policy };
    for entry in &document.hide {
        let CheckedPath { path, .. } = check_path(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::location(entry),
            diagnostics,
        );
        let before = policy.visible.len();
        policy.visible.retain(|visible| visible.path != path);
        if policy.visible.len() == before {
            diagnostics.add(
                yaml::location(entry),
                "profile_hides_nothing",
                format!("{path} is not visible in the parent profile"),
            );
        }
    }
    for entry in &document.visible {
        let CheckedPath { path, reason } = check_path(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::location(entry),
            diagnostics,
        );
        replace_or_push(
            &mut policy.visible,
            |old| &old.path,
            VisiblePath {
                path,
                optional: entry.value.optional,
                reason,
            },
        );
    }
    for entry in &document.directories {
        let CheckedPath { path, reason } = check_path(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::location(entry),
            diagnostics,
        );
        replace_or_push(
            &mut policy.directories,
            |old| &old.path,
            EmptyDirectory { path, reason },
        );
    }
    for entry in &document.links {
        let CheckedPath { path, reason } = check_path(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::location(entry),
            diagnostics,
        );
        replace_or_push(
            &mut policy.links,
            |old| &old.path,
            SymbolicLink {
                path,
                target: entry.value.target.clone(),
                reason,
            },
        );
    }
    for entry in &document.files {
        let CheckedPath { path, reason } = check_path(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::location(entry),
            diagnostics,
        );
        replace_or_push(
            &mut policy.files,
            |old| &old.path,
            FixedFile {
                path,
                content: entry.value.content.clone(),
                reason,
            },
        );
    }
    for entry in &document.devices {
        let reason = diagnostics.require_reason(entry.value.reason.as_ref(), yaml::location(entry), &entry.value.name);
        replace_or_push(
            &mut policy.devices,
            |old| &old.name,
            Device {
                name: entry.value.name.clone(),
                reason,
            },
        );
    }
    for entry in &document.masked {
        let CheckedPath { path, reason } = check_path(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::location(entry),
            diagnostics,
        );
        replace_or_push(&mut policy.masked, |old| &old.path, MaskedPath { path, reason });
    }
    if let Some(shm) = &document.shm {
        policy.shm = shm.value;
    }
    policy
}

struct CheckedPath {
    path: String,
    reason: String,
}

fn check_path(
    path: &str,
    reason: Option<&String>,
    location: Option<Location>,
    diagnostics: &mut Diagnostics,
) -> CheckedPath {
    let reason = diagnostics.require_reason(reason, location, path);
    let is_normalized = path.starts_with('/')
        && path.len() > 1
        && !path.contains('\0')
        && path[1..].split('/').all(|part| !matches!(part, "" | "." | ".."));
    if path == "~" || path.starts_with("~/") {
        let message = format!("{path:?} begins with `~`, which is not expanded in profiles");
        let hint = "write the absolute path of the directory".to_owned();
        diagnostics.add_with_hint(location, "profile_path", message, hint);
    } else if !is_normalized {
        let message =
            format!("{path:?} is not an absolute path without `.`, `..`, double slashes and a trailing slash");
        diagnostics.add(location, "profile_path", message);
    }
    CheckedPath {
        path: path.to_owned(),
        reason,
    }
}

fn merge_environment(
    document: Option<&EnvironmentSection>,
    parent: Option<&Profile>,
    diagnostics: &mut Diagnostics,
) -> EnvironmentPolicy {
    let mut policy = parent.map(|parent| parent.environment.clone()).unwrap_or_default();
    let Some(document) = document else { return policy };
    for entry in &document.pass {
        let reason = diagnostics.require_reason(entry.value.reason.as_ref(), yaml::location(entry), &entry.value.name);
        let name = entry.value.name.clone();
        policy.set.retain(|old| old.name != name);
        replace_or_push(&mut policy.pass, |old| &old.name, PassedVariable { name, reason });
    }
    for entry in &document.set {
        let reason = diagnostics.require_reason(entry.value.reason.as_ref(), yaml::location(entry), &entry.value.name);
        let name = entry.value.name.clone();
        if !document.pass.iter().any(|passed| passed.value.name == name) {
            policy.pass.retain(|old| old.name != name);
        }
        replace_or_push(
            &mut policy.set,
            |old| &old.name,
            FixedVariable {
                name,
                value: entry.value.value.clone(),
                reason,
            },
        );
    }
    policy
}

fn merge_limits(
    document: Option<&Located<LimitsSection>>,
    parent: Option<&Profile>,
    name_location: Option<Location>,
    diagnostics: &mut Diagnostics,
) -> Option<ProfileLimits> {
    let empty = LimitsSection::default();
    let own = document.map_or(&empty, |document| &document.value);
    let inherited = parent.map(|parent| &parent.limits);
    let location = document.and_then(yaml::location).or(name_location);
    let mut missing = Vec::new();
    macro_rules! inherit {
        ($field:ident) => {
            inherit!($field, |value| value)
        };
        ($field:ident, $convert:expr) => {{
            let own = own.$field.as_ref().map(|value| ($convert)(value.value));
            let value = own.or_else(|| inherited.map(|inherited| inherited.default.$field));
            if value.is_none() {
                missing.push(stringify!($field));
            }
            value
        }};
    }
    let wall = inherit!(wall, |value: ParsedDuration| value.0);
    let cpu = inherit!(cpu, |value: ParsedDuration| value.0);
    let (memory, pids, open_files) = (inherit!(memory), inherit!(pids), inherit!(open_files));
    let (file, output) = (inherit!(file), inherit!(output));
    let (workspace, workspace_inodes) = (inherit!(workspace), inherit!(workspace_inodes));
    if !missing.is_empty() {
        let message = format!(
            "a profile without `extends` must set every limit; missing: {}",
            missing.join(", ")
        );
        diagnostics.add(location, "profile_incomplete", message);
        return None;
    }
    let cpu_quota = own.cpu_quota_millis.as_ref().map(|quota| quota.value);
    let default = Limits {
        wall: wall?,
        cpu: cpu?,
        cpu_quota_millis: cpu_quota.or_else(|| inherited.and_then(|inherited| inherited.default.cpu_quota_millis)),
        memory: memory?,
        pids: pids?,
        open_files: open_files?,
        file: file?,
        workspace: workspace?,
        workspace_inodes: workspace_inodes?,
        output: output?,
    };
    let wall_max = own
        .wall_max
        .as_ref()
        .map(|wall| wall.value.0)
        .or_else(|| inherited.map(|inherited| inherited.wall_max));
    Some(ProfileLimits {
        wall_max: wall_max.unwrap_or(default.wall),
        default,
    })
}
