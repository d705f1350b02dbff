//! The structure of a profile file: the document, its sections, and the entries of their lists.

use std::collections::BTreeMap;

use serde::Deserialize;
use skillbox_model::{ByteSize, Layer};

use super::duration::ParsedDuration;
use super::name_list::NameList;
use super::network_section::NetworkSection;
use super::policy::{Need, SkillDirAccess, WorkspaceBacking};
use super::yaml::Located;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileDocument {
    pub name: Located<String>,
    pub description: Option<Located<String>>,
    pub extends: Option<Located<String>>,
    #[serde(default)]
    pub layers: BTreeMap<Layer, Located<Need>>,
    #[serde(default)]
    pub container_layers: BTreeMap<Layer, Located<Need>>,
    pub filesystem: Option<FilesystemSection>,
    pub workspace: Option<WorkspaceSection>,
    pub network: Option<Located<NetworkSection>>,
    pub syscalls: Option<SyscallsSection>,
    pub environment: Option<EnvironmentSection>,
    pub limits: Option<Located<LimitsSection>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilesystemSection {
    pub visible: Vec<Located<VisiblePathEntry>>,
    pub hide: Vec<Located<PathEntry>>,
    pub directories: Vec<Located<PathEntry>>,
    pub links: Vec<Located<LinkEntry>>,
    pub files: Vec<Located<FileEntry>>,
    pub devices: Vec<Located<NameEntry>>,
    pub masked: Vec<Located<PathEntry>>,
    pub shm: Option<Located<ByteSize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VisiblePathEntry {
    pub path: String,
    #[serde(default)]
    pub optional: bool,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathEntry {
    pub path: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkEntry {
    pub path: String,
    pub target: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEntry {
    pub path: String,
    pub content: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameEntry {
    pub name: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceSection {
    pub backing: Option<WorkspaceBacking>,
    pub skill_dir: Option<SkillDirAccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SyscallsSection {
    pub allow: Vec<Located<AllowEntry>>,
    pub refuse: Vec<Located<RefuseEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowEntry {
    pub calls: NameList,
    pub argument: Option<u8>,
    pub any_of: Option<NameList>,
    pub none_of: Option<NameList>,
    pub no_bits_of: Option<NameList>,
    pub or: Option<OrEntry>,
    pub otherwise: Option<Located<String>>,
    pub reason: Option<String>,
}

/// A condition on another argument that allows a call where the first condition fails.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrEntry {
    pub argument: u8,
    pub any_of: Option<NameList>,
    pub none_of: Option<NameList>,
    pub no_bits_of: Option<NameList>,
    #[serde(default)]
    pub is_null: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefuseEntry {
    pub calls: NameList,
    pub errno: Option<Located<String>>,
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EnvironmentSection {
    pub pass: Vec<Located<NameEntry>>,
    pub set: Vec<Located<FixedVariableEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FixedVariableEntry {
    pub name: String,
    pub value: String,
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsSection {
    pub wall: Option<Located<ParsedDuration>>,
    pub wall_max: Option<Located<ParsedDuration>>,
    pub cpu: Option<Located<ParsedDuration>>,
    pub cpu_quota_millis: Option<Located<u32>>,
    pub memory: Option<Located<ByteSize>>,
    pub pids: Option<Located<u64>>,
    pub open_files: Option<Located<u64>>,
    pub file: Option<Located<ByteSize>>,
    pub workspace: Option<Located<ByteSize>>,
    pub workspace_inodes: Option<Located<u64>>,
    pub output: Option<Located<ByteSize>>,
}
