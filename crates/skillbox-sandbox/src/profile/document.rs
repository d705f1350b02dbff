//! The structure of a profile file.

use std::collections::BTreeMap;

use serde::Deserialize;
use skillbox_model::{ByteSize, Layer};

use super::name_list::NameList;
use super::policy::{Backing, Need, NetworkPolicy};
use super::seconds::Seconds;
use super::yaml::Located;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub name: Located<String>,
    pub description: Option<Located<String>>,
    pub extends: Option<Located<String>>,
    #[serde(default)]
    pub layers: BTreeMap<Layer, Located<Need>>,
    #[serde(default)]
    pub container_layers: BTreeMap<Layer, Located<Need>>,
    pub filesystem: Option<FilesystemDocument>,
    pub workspace: Option<WorkspaceDocument>,
    pub network: Option<Located<NetworkPolicy>>,
    pub syscalls: Option<SyscallsDocument>,
    pub environment: Option<EnvironmentDocument>,
    pub limits: Option<Located<LimitsDocument>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilesystemDocument {
    pub visible: Vec<Located<VisibleDocument>>,
    pub hide: Vec<Located<PathDocument>>,
    pub directories: Vec<Located<PathDocument>>,
    pub links: Vec<Located<LinkDocument>>,
    pub files: Vec<Located<FileDocument>>,
    pub devices: Vec<Located<NameDocument>>,
    pub masked: Vec<Located<PathDocument>>,
    pub shm: Option<Located<ByteSize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VisibleDocument {
    pub path: String,
    #[serde(default)]
    pub optional: bool,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathDocument {
    pub path: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkDocument {
    pub path: String,
    pub target: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDocument {
    pub path: String,
    pub content: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameDocument {
    pub name: String,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceDocument {
    pub backing: Backing,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SyscallsDocument {
    pub allow: Vec<Located<AllowDocument>>,
    pub refuse: Vec<Located<RefuseDocument>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowDocument {
    pub calls: NameList,
    pub argument: Option<u8>,
    pub any_of: Option<NameList>,
    pub none_of: Option<NameList>,
    pub no_bits_of: Option<NameList>,
    pub otherwise: Option<Located<String>>,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefuseDocument {
    pub calls: NameList,
    pub errno: Option<Located<String>>,
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EnvironmentDocument {
    pub pass: Vec<Located<NameDocument>>,
    pub set: Vec<Located<SetDocument>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetDocument {
    pub name: String,
    pub value: String,
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsDocument {
    pub wall: Option<Located<Seconds>>,
    pub wall_max: Option<Located<Seconds>>,
    pub cpu: Option<Located<Seconds>>,
    pub cpu_quota_millis: Option<Located<u32>>,
    pub memory: Option<Located<ByteSize>>,
    pub pids: Option<Located<u64>>,
    pub open_files: Option<Located<u64>>,
    pub file: Option<Located<ByteSize>>,
    pub workspace: Option<Located<ByteSize>>,
    pub workspace_inodes: Option<Located<u64>>,
    pub output: Option<Located<ByteSize>>,
}
