//! A document over the profile it extends.

use skillbox_model::{Layer, Limits, ProfileName};

use super::document::{Document, EnvironmentDocument, FilesystemDocument, LimitsDocument};
use super::findings::Findings;
use super::policy::{
    Backing, Device, EnvironmentPolicy, FilesystemPolicy, MadeDirectory, MadeFile, MadeLink, MaskedPath, Need,
    NetworkPolicy, PassedVariable, Profile, ProfileLimits, SetVariable, VisiblePath, WorkspacePolicy,
};
use super::syscalls;
use super::yaml::{self, At, Place};

/// The complete profile, or none where something that every profile needs is missing.
pub(super) fn resolve(document: &Document, parent: Option<&Profile>, findings: &mut Findings) -> Option<Profile> {
    let name_place = yaml::place(&document.name);
    let name = match ProfileName::parse(document.name.value.clone()) {
        Ok(name) => name,
        Err(error) => {
            findings.add(name_place, "profile_name", error.to_string());
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
            "a profile that extends nothing names every layer; missing: {}",
            missing.join(", ")
        );
        findings.add(name_place, "profile_incomplete", message);
    }
    let description = document
        .description
        .as_ref()
        .map(|description| description.value.clone())
        .or_else(|| parent.map(|parent| parent.description.clone()))
        .unwrap_or_default();
    let limits = limits(document.limits.as_ref(), parent, name_place, findings)?;
    Some(Profile {
        name,
        description,
        extends: parent.map(|parent| parent.name.clone()),
        layers,
        container_layers,
        filesystem: filesystem(document.filesystem.as_ref(), parent, findings),
        workspace: document
            .workspace
            .as_ref()
            .map(|workspace| WorkspacePolicy {
                backing: workspace.backing,
            })
            .or_else(|| parent.map(|parent| parent.workspace))
            .unwrap_or(WorkspacePolicy {
                backing: Backing::Tmpfs,
            }),
        network: document
            .network
            .as_ref()
            .map(|network| network.value)
            .or_else(|| parent.map(|parent| parent.network))
            .unwrap_or(NetworkPolicy::None),
        syscalls: syscalls::resolve(document.syscalls.as_ref(), parent, findings)?,
        environment: environment(document.environment.as_ref(), parent, findings),
        limits,
    })
}

/// Puts an entry in the place of the one with the same key, or at the end.
fn put<T>(list: &mut Vec<T>, key: impl Fn(&T) -> &str, entry: T) {
    match list.iter().position(|old| key(old) == key(&entry)) {
        Some(index) => list[index] = entry,
        None => list.push(entry),
    }
}

fn filesystem(
    document: Option<&FilesystemDocument>,
    parent: Option<&Profile>,
    findings: &mut Findings,
) -> FilesystemPolicy {
    let mut policy = parent.map(|parent| parent.filesystem.clone()).unwrap_or_default();
    let Some(document) = document else { return policy };
    for entry in &document.hide {
        let PathEntry { path, .. } = path_entry(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::place(entry),
            findings,
        );
        let before = policy.visible.len();
        policy.visible.retain(|visible| visible.path != path);
        if policy.visible.len() == before {
            findings.add(
                yaml::place(entry),
                "profile_hides_nothing",
                format!("{path} is not visible in the first place"),
            );
        }
    }
    for entry in &document.visible {
        let PathEntry { path, reason } = path_entry(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::place(entry),
            findings,
        );
        put(
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
        let PathEntry { path, reason } = path_entry(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::place(entry),
            findings,
        );
        put(&mut policy.directories, |old| &old.path, MadeDirectory { path, reason });
    }
    for entry in &document.links {
        let PathEntry { path, reason } = path_entry(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::place(entry),
            findings,
        );
        put(
            &mut policy.links,
            |old| &old.path,
            MadeLink {
                path,
                target: entry.value.target.clone(),
                reason,
            },
        );
    }
    for entry in &document.files {
        let PathEntry { path, reason } = path_entry(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::place(entry),
            findings,
        );
        put(
            &mut policy.files,
            |old| &old.path,
            MadeFile {
                path,
                content: entry.value.content.clone(),
                reason,
            },
        );
    }
    for entry in &document.devices {
        let reason = findings.reason(entry.value.reason.as_ref(), yaml::place(entry), &entry.value.name);
        put(
            &mut policy.devices,
            |old| &old.name,
            Device {
                name: entry.value.name.clone(),
                reason,
            },
        );
    }
    for entry in &document.masked {
        let PathEntry { path, reason } = path_entry(
            &entry.value.path,
            entry.value.reason.as_ref(),
            yaml::place(entry),
            findings,
        );
        put(&mut policy.masked, |old| &old.path, MaskedPath { path, reason });
    }
    if let Some(shm) = &document.shm {
        policy.shm = shm.value;
    }
    policy
}

struct PathEntry {
    path: String,
    reason: String,
}

fn path_entry(path: &str, reason: Option<&String>, place: Option<Place>, findings: &mut Findings) -> PathEntry {
    let reason = findings.reason(reason, place, path);
    let plain = path.starts_with('/')
        && path.len() > 1
        && !path.contains('\0')
        && path[1..].split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !plain {
        let message = format!("{path:?} is not an absolute path without `.`, `..` and doubled or trailing slashes");
        findings.add(place, "profile_path", message);
    }
    PathEntry {
        path: path.to_owned(),
        reason,
    }
}

fn environment(
    document: Option<&EnvironmentDocument>,
    parent: Option<&Profile>,
    findings: &mut Findings,
) -> EnvironmentPolicy {
    let mut policy = parent.map(|parent| parent.environment.clone()).unwrap_or_default();
    let Some(document) = document else { return policy };
    for entry in &document.pass {
        let reason = findings.reason(entry.value.reason.as_ref(), yaml::place(entry), &entry.value.name);
        let name = entry.value.name.clone();
        policy.set.retain(|old| old.name != name);
        put(&mut policy.pass, |old| &old.name, PassedVariable { name, reason });
    }
    for entry in &document.set {
        let reason = findings.reason(entry.value.reason.as_ref(), yaml::place(entry), &entry.value.name);
        let name = entry.value.name.clone();
        if !document.pass.iter().any(|passed| passed.value.name == name) {
            policy.pass.retain(|old| old.name != name);
        }
        put(
            &mut policy.set,
            |old| &old.name,
            SetVariable {
                name,
                value: entry.value.value.clone(),
                reason,
            },
        );
    }
    policy
}

fn limits(
    document: Option<&At<LimitsDocument>>,
    parent: Option<&Profile>,
    name_place: Option<Place>,
    findings: &mut Findings,
) -> Option<ProfileLimits> {
    let empty = LimitsDocument::default();
    let own = document.map_or(&empty, |document| &document.value);
    let old = parent.map(|parent| &parent.limits);
    let place = document.and_then(yaml::place).or(name_place);
    let mut missing = Vec::new();
    macro_rules! settle {
        ($field:ident) => {
            settle!($field, |value| value)
        };
        ($field:ident, $convert:expr) => {{
            let own = own.$field.as_ref().map(|value| ($convert)(value.value));
            let settled = own.or_else(|| old.map(|old| old.default.$field));
            if settled.is_none() {
                missing.push(stringify!($field));
            }
            settled
        }};
    }
    let wall = settle!(wall, |value: super::seconds::Seconds| value.0);
    let cpu = settle!(cpu, |value: super::seconds::Seconds| value.0);
    let (memory, pids, open_files) = (settle!(memory), settle!(pids), settle!(open_files));
    let (file, output) = (settle!(file), settle!(output));
    let (workspace, workspace_inodes) = (settle!(workspace), settle!(workspace_inodes));
    if !missing.is_empty() {
        let message = format!(
            "a profile that extends nothing sets every limit; missing: {}",
            missing.join(", ")
        );
        findings.add(place, "profile_incomplete", message);
        return None;
    }
    let cpu_quota = own.cpu_quota_millis.as_ref().map(|quota| quota.value);
    let default = Limits {
        wall: wall?,
        cpu: cpu?,
        cpu_quota_millis: cpu_quota.or_else(|| old.and_then(|old| old.default.cpu_quota_millis)),
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
        .or_else(|| old.map(|old| old.wall_max));
    Some(ProfileLimits {
        wall_max: wall_max.unwrap_or(default.wall),
        default,
    })
}

/// The need that a document writes for a layer, with its place.
pub(super) fn written_need(document: &Document, layer: Layer) -> (Option<Need>, Option<Place>) {
    let written = document.layers.get(&layer);
    (written.map(|need| need.value), written.and_then(yaml::place))
}
