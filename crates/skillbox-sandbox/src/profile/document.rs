//! The shape of a profile's file, as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use skillbox_model::{ByteSize, Layer};

use super::policy::{Backing, Need, NetworkPolicy};
use super::seconds::Seconds;
use super::words::Words;
use super::yaml::At;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub name: At<String>,
    pub description: Option<At<String>>,
    pub extends: Option<At<String>>,
    #[serde(default)]
    pub layers: BTreeMap<Layer, At<Need>>,
    #[serde(default)]
    pub container_layers: BTreeMap<Layer, At<Need>>,
    pub filesystem: Option<FilesystemDocument>,
    pub workspace: Option<WorkspaceDocument>,
    pub network: Option<At<NetworkPolicy>>,
    pub syscalls: Option<SyscallsDocument>,
    pub environment: Option<EnvironmentDocument>,
    pub limits: Option<At<LimitsDocument>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilesystemDocument {
    pub visible: Vec<At<VisibleDocument>>,
    pub hide: Vec<At<PathDocument>>,
    pub directories: Vec<At<PathDocument>>,
    pub links: Vec<At<LinkDocument>>,
    pub files: Vec<At<FileDocument>>,
    pub devices: Vec<At<NamedDocument>>,
    pub masked: Vec<At<PathDocument>>,
    pub shm: Option<At<ByteSize>>,
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
pub(super) struct NamedDocument {
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
    pub allow: Vec<At<AllowDocument>>,
    pub refuse: Vec<At<RefuseDocument>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowDocument {
    pub calls: Words,
    pub argument: Option<u8>,
    pub any_of: Option<Words>,
    pub none_of: Option<Words>,
    pub no_bits_of: Option<Words>,
    pub otherwise: Option<At<String>>,
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefuseDocument {
    pub calls: Words,
    pub errno: Option<At<String>>,
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EnvironmentDocument {
    pub pass: Vec<At<NamedDocument>>,
    pub set: Vec<At<SetDocument>>,
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
    pub wall: Option<At<Seconds>>,
    pub wall_max: Option<At<Seconds>>,
    pub cpu: Option<At<Seconds>>,
    pub cpu_quota_millis: Option<At<u32>>,
    pub memory: Option<At<ByteSize>>,
    pub pids: Option<At<u64>>,
    pub open_files: Option<At<u64>>,
    pub file: Option<At<ByteSize>>,
    pub workspace: Option<At<ByteSize>>,
    pub workspace_inodes: Option<At<u64>>,
    pub output: Option<At<ByteSize>>,
}
