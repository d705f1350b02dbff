//! Files of a skill as resources.

use std::io::{self, Read};

use base64::Engine;
use rmcp::ErrorData;
use rmcp::model::{Annotations, MetaObject, Resource, ResourceContents, Role};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, SkillEntry, SkillReadError, TreeEntryKind};

use super::uri::{SKILL_MD, SkillUri, file_uri, unknown_resource};
use crate::blocking::internal_error;
use crate::server_state::ServerState;

/// Maximum size of a resource: the extension's limit for a whole skill.
pub(crate) const MAX_RESOURCE_BYTES: u64 = 16 << 20;
/// The prefix of the extension's `_meta` keys.
const META_PREFIX: &str = "io.modelcontextprotocol.skills/";

/// A file of a skill, by its names in the protocol and on disk.
#[derive(Debug)]
pub(crate) struct SkillFile {
    /// The path in the protocol.
    pub wire_path: RelPath,
    /// The path on disk, which differs if the skill names its `SKILL.md` in another case.
    pub disk_path: RelPath,
}

/// Every file of a skill, including links to files inside the skill.
pub(crate) fn list_files(entry: &SkillEntry, dir: &SkillDir) -> Result<Vec<SkillFile>, SkillReadError> {
    let mut files = Vec::new();
    for found in dir.tree_entries()? {
        match found.kind {
            TreeEntryKind::Dir => continue,
            // A link to a directory is not a file, and its content is listed under its real path.
            TreeEntryKind::Link { .. } if dir.open_file(&found.path).is_err() => continue,
            TreeEntryKind::File { .. } | TreeEntryKind::Link { .. } => files.push(SkillFile {
                wire_path: wire_path(entry, &found.path),
                disk_path: found.path,
            }),
        }
    }
    Ok(files)
}

/// The path in the protocol, where the main file is always named `SKILL.md`.
pub(crate) fn wire_path(entry: &SkillEntry, path: &RelPath) -> RelPath {
    if path.as_bytes() == entry.skill_md_name().as_encoded_bytes() {
        return skill_md_wire_path();
    }
    path.clone()
}

/// The path on disk of a path in the protocol.
fn disk_path(entry: &SkillEntry, path: &RelPath) -> RelPath {
    if *path == skill_md_wire_path() {
        return RelPath::parse(entry.skill_md_name().as_encoded_bytes()).unwrap_or_else(|_| skill_md_wire_path());
    }
    path.clone()
}

/// The path of every `SKILL.md` in the protocol.
pub(crate) fn skill_md_wire_path() -> RelPath {
    RelPath::parse(SKILL_MD).unwrap_or_else(|error| unreachable!("a plain file name is a path: {error}"))
}

/// Reads a file, and returns its size and digest.
pub(crate) fn hash_file(dir: &SkillDir, path: &RelPath) -> Result<(u64, String), SkillReadError> {
    let mut file = dir.open_file(path)?;
    let mut hasher = Sha256::new();
    let mut size = 0;
    let mut buffer = [0; 16 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => {
                let path = path.as_path().to_owned();
                return Err(SkillReadError::Io { path, source });
            }
        }
    }
    let digest = skillbox_model::Digest::from_sha256(hasher.finalize().into());
    Ok((size, digest.to_string()))
}

/// The resource of a skill's SKILL.md.
pub(crate) fn skill_md_resource(entry: &SkillEntry) -> Result<Resource, SkillReadError> {
    let dir = entry.open()?;
    let path = skill_md_wire_path();
    let (size, digest) = hash_file(&dir, &disk_path(entry, &path))?;
    let resource = Resource::new(file_uri(entry.name().as_str(), &path), entry.name().as_str())
        .with_description(&*entry.meta.description);
    Ok(with_details(resource, &path, size, digest))
}

/// The resource of any file of a skill.
pub(crate) fn file_resource(entry: &SkillEntry, dir: &SkillDir, file: &SkillFile) -> Result<Resource, SkillReadError> {
    if file.wire_path == skill_md_wire_path() {
        return skill_md_resource(entry);
    }
    let (size, digest) = hash_file(dir, &file.disk_path)?;
    let name = String::from_utf8_lossy(file.wire_path.file_name()).into_owned();
    let resource = Resource::new(file_uri(entry.name().as_str(), &file.wire_path), name);
    Ok(with_details(resource, &file.wire_path, size, digest))
}

fn with_details(resource: Resource, path: &RelPath, size: u64, digest: String) -> Resource {
    let priority = if *path == skill_md_wire_path() { 0.8 } else { 0.3 };
    let annotations = Annotations::default()
        .with_audience(vec![Role::Assistant])
        .with_priority(priority);
    resource
        .with_mime_type(mime_type(path))
        .with_size(size)
        .with_meta(digest_meta(digest))
        .with_annotations(annotations)
}

fn digest_meta(digest: String) -> MetaObject {
    let Value::Object(meta) = json!({format!("{META_PREFIX}digest"): digest}) else {
        return MetaObject::default();
    };
    MetaObject(meta)
}

fn mime_type(path: &RelPath) -> String {
    mime_guess::from_path(path.as_path())
        .first_or_octet_stream()
        .to_string()
}

/// The contents of a file.
pub(crate) fn read_file(server: &ServerState, uri: &str) -> Result<ResourceContents, ErrorData> {
    let SkillUri {
        skill,
        path: Some(path),
    } = SkillUri::parse(uri)?
    else {
        return Err(unknown_resource(uri));
    };
    let catalog = server.runtime.catalog();
    let entry = catalog.get(&skill).ok_or_else(|| unknown_resource(uri))?;
    let bytes = entry
        .open()
        .and_then(|dir| dir.read_file(&disk_path(entry, &path), MAX_RESOURCE_BYTES))
        .map_err(|error| match error {
            SkillReadError::Io { .. } => internal_error(&error),
            SkillReadError::TooLarge { .. } => ErrorData::invalid_params(error.to_string(), None),
            _ => unknown_resource(uri),
        })?;
    let digest = skillbox_model::Digest::from_sha256(Sha256::digest(&bytes).into());
    let meta = digest_meta(digest.to_string());
    Ok(to_contents(uri, bytes, &mime_type(&path)).with_meta(meta))
}

/// Bytes as resource contents: text if they are UTF-8, otherwise base64.
pub(crate) fn to_contents(uri: &str, bytes: Vec<u8>, mime_type: &str) -> ResourceContents {
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => {
            let encoded = base64::engine::general_purpose::STANDARD.encode(error.as_bytes());
            ResourceContents::blob(encoded, uri)
        }
    };
    contents.with_mime_type(mime_type)
}
