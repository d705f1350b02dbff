//! A document over the profile it extends.

use std::path::{Path, PathBuf};

use skillbox_model::{Diagnostic, Layer, Limits, ProfileName};

use super::catalogue::finding;
use super::document::{
    AllowDocument, Document, EnvironmentDocument, FilesystemDocument, LimitsDocument, SyscallsDocument,
};
use super::policy::{
    Backing, Device, EnvironmentPolicy, FilesystemPolicy, MadeDirectory, MadeFile, MadeLink, MaskedPath, Need,
    NetworkPolicy, PassedVariable, Profile, ProfileLimits, SetVariable, VisiblePath, WorkspacePolicy,
};
use super::yaml::{self, At, Place};
use crate::seccomp::{ArgumentTest, Constant, SyscallAction, SyscallRule, errno_named, number_of, value_of};

/// What is wrong with a document, with its places.
pub(super) struct Findings {
    path: PathBuf,
    list: Vec<Diagnostic>,
}

impl Findings {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            list: Vec::new(),
        }
    }

    pub fn add(&mut self, place: Option<Place>, code: &'static str, message: String) {
        self.list.push(finding(&self.path, place, code, message, None));
    }

    pub fn hint(&mut self, place: Option<Place>, code: &'static str, message: String, hint: String) {
        self.list.push(finding(&self.path, place, code, message, Some(hint)));
    }

    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// The reason of an entry; without one the entry is an error.
    fn reason(&mut self, reason: Option<&String>, place: Option<Place>, what: &str) -> String {
        match reason.map(|reason| reason.trim()).filter(|reason| !reason.is_empty()) {
            Some(reason) => reason.to_owned(),
            None => {
                let message = format!("the entry for {what} has no reason");
                let hint = "say in one line why the script needs it".to_owned();
                self.hint(place, "profile_reason_missing", message, hint);
                String::new()
            }
        }
    }
}

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
        syscalls: syscalls(document.syscalls.as_ref(), parent, findings),
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

fn syscalls(
    document: Option<&SyscallsDocument>,
    parent: Option<&Profile>,
    findings: &mut Findings,
) -> Vec<SyscallRule> {
    let mut rules = parent.map(|parent| parent.syscalls.clone()).unwrap_or_default();
    let Some(document) = document else { return rules };
    let mut own = Vec::new();
    for entry in &document.allow {
        let place = yaml::place(entry);
        let calls = calls(&entry.value.calls, &own, findings);
        let reason = findings.reason(entry.value.reason.as_ref(), place, &calls.join(", "));
        if let Some(action) = allowed(&entry.value, place, findings) {
            own.push(SyscallRule { calls, action, reason });
        }
    }
    for entry in &document.refuse {
        let calls = calls(&entry.value.calls, &own, findings);
        let reason = findings.reason(entry.value.reason.as_ref(), yaml::place(entry), &calls.join(", "));
        let errno = errno(entry.value.errno.as_ref(), findings);
        own.push(SyscallRule {
            calls,
            action: SyscallAction::Refuse { errno },
            reason,
        });
    }
    // The document's word about a call replaces the parent's.
    for rule in &mut rules {
        rule.calls
            .retain(|call| !own.iter().any(|own| own.calls.contains(call)));
    }
    rules.retain(|rule| !rule.calls.is_empty());
    rules.extend(own);
    rules
}

fn calls(names: &[At<String>], before: &[SyscallRule], findings: &mut Findings) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for name in names {
        if number_of(&name.value).is_none() {
            findings.add(
                yaml::place(name),
                "profile_unknown_call",
                format!("no system call is named {:?}", name.value),
            );
        }
        let twice = calls.contains(&name.value) || before.iter().any(|rule| rule.calls.contains(&name.value));
        if twice {
            let message = format!("the system call {:?} is named twice", name.value);
            findings.add(yaml::place(name), "profile_contradiction", message);
        }
        calls.push(name.value.clone());
    }
    calls
}

fn allowed(document: &AllowDocument, place: Option<Place>, findings: &mut Findings) -> Option<SyscallAction> {
    let mut tests = Vec::new();
    let mut read = |list: &Option<Vec<At<String>>>, test: fn(Vec<Constant>) -> ArgumentTest| {
        if let Some(list) = list {
            tests.push(test(constants(list, findings)));
        }
    };
    read(&document.any_of, ArgumentTest::AnyOf);
    read(&document.none_of, ArgumentTest::NoneOf);
    read(&document.no_bits_of, ArgumentTest::NoBitsOf);
    let message = match (document.argument, tests.len()) {
        (None, 0) if document.otherwise.is_none() => return Some(SyscallAction::Allow),
        (Some(argument @ 0..=5), 1) => {
            let otherwise = errno(document.otherwise.as_ref(), findings);
            let test = tests.remove(0);
            return Some(SyscallAction::AllowIf {
                argument,
                test,
                otherwise,
            });
        }
        (Some(0..=5), _) => "a condition has exactly one of any_of, none_of and no_bits_of",
        (Some(_), _) => "a system call has the arguments 0 to 5",
        (None, _) => "a condition names its argument",
    };
    findings.add(place, "profile_condition", message.to_owned());
    None
}

fn constants(list: &[At<String>], findings: &mut Findings) -> Vec<Constant> {
    let mut constants = Vec::new();
    for text in list {
        match value_of(&text.value) {
            Some(constant) => constants.push(constant),
            None => {
                let message = format!("{:?} is neither a known constant nor a 32-bit number", text.value);
                findings.add(yaml::place(text), "profile_unknown_constant", message);
            }
        }
    }
    constants
}

fn errno(name: Option<&At<String>>, findings: &mut Findings) -> Constant {
    let fallback = Constant {
        name: "EPERM".to_owned(),
        value: libc::EPERM as u32,
    };
    let Some(name) = name else { return fallback };
    errno_named(&name.value).unwrap_or_else(|| {
        findings.add(
            yaml::place(name),
            "profile_unknown_constant",
            format!("{:?} is not a known error", name.value),
        );
        fallback
    })
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
