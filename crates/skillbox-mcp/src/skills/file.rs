//! The files of a skill as resources.

use std::io::{self, Read};

use base64::Engine;
use rmcp::ErrorData;
use rmcp::model::{Annotations, MetaObject, Resource, ResourceContents, Role};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, SkillEntry, SkillReadError, TreeEntryKind};

use super::uri::{SKILL_MD, SkillUri, unknown, uri_of};
use crate::host::{Host, failed};

/// One resource may have so many bytes; the limit that the extension sets for a whole skill.
pub(crate) const MAX_RESOURCE_BYTES: u64 = 16 << 20;
/// The prefix of what we say about a resource.
const META: &str = "io.modelcontextprotocol.skills/";

/// A file of a skill, as the wire names it.
#[derive(Debug)]
pub(crate) struct SkillFile {
    /// Its path on the wire.
    pub path: RelPath,
    /// Its path on disk, which differs for a `skill.md`.
    pub on_disk: RelPath,
}

/// Every file of a skill, each once; links inside it that lead to a file are files.
pub(crate) fn files(entry: &SkillEntry, dir: &SkillDir) -> Result<Vec<SkillFile>, SkillReadError> {
    let mut files = Vec::new();
    for found in dir.files()? {
        match found.kind {
            TreeEntryKind::Dir => continue,
            // A link to a directory is no file, and what is in it is met under its own name.
            TreeEntryKind::Link { .. } if dir.open_file(&found.path).is_err() => continue,
            TreeEntryKind::File { .. } | TreeEntryKind::Link { .. } => files.push(SkillFile {
                path: on_the_wire(entry, &found.path),
                on_disk: found.path,
            }),
        }
    }
    Ok(files)
}

/// The wire knows one spelling of SKILL.md.
pub(crate) fn on_the_wire(entry: &SkillEntry, path: &RelPath) -> RelPath {
    if path.as_bytes() == entry.file_name().as_encoded_bytes() {
        return skill_md();
    }
    path.clone()
}

fn on_disk(entry: &SkillEntry, path: &RelPath) -> RelPath {
    if *path == skill_md() {
        return RelPath::parse(entry.file_name().as_encoded_bytes()).unwrap_or_else(|_| skill_md());
    }
    path.clone()
}

pub(crate) fn skill_md() -> RelPath {
    RelPath::parse(SKILL_MD).unwrap_or_else(|error| unreachable!("a plain file name is a path: {error}"))
}

/// Size and digest of a file's bytes.
pub(crate) fn measure(dir: &SkillDir, path: &RelPath) -> Result<(u64, String), SkillReadError> {
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
    Ok((size, format!("sha256:{}", digest.hex())))
}

/// The resource of a skill's SKILL.md.
pub(crate) fn skill_md_resource(entry: &SkillEntry) -> Result<Resource, SkillReadError> {
    let dir = entry.open()?;
    let path = skill_md();
    let (size, digest) = measure(&dir, &on_disk(entry, &path))?;
    let resource = Resource::new(uri_of(entry.name().as_str(), &path), entry.name().as_str())
        .with_description(&*entry.meta.description);
    Ok(described(resource, &path, size, digest))
}

/// The resource of any file of a skill.
pub(crate) fn resource(entry: &SkillEntry, dir: &SkillDir, file: &SkillFile) -> Result<Resource, SkillReadError> {
    if file.path == skill_md() {
        return skill_md_resource(entry);
    }
    let (size, digest) = measure(dir, &file.on_disk)?;
    let name = String::from_utf8_lossy(file.path.file_name()).into_owned();
    let resource = Resource::new(uri_of(entry.name().as_str(), &file.path), name);
    Ok(described(resource, &file.path, size, digest))
}

fn described(resource: Resource, path: &RelPath, size: u64, digest: String) -> Resource {
    let priority = if *path == skill_md() { 0.8 } else { 0.3 };
    let annotations = Annotations::default()
        .with_audience(vec![Role::Assistant])
        .with_priority(priority);
    resource
        .with_mime_type(mime_type(path))
        .with_size(size)
        .with_meta(meta_of(digest))
        .with_annotations(annotations)
}

fn meta_of(digest: String) -> MetaObject {
    let Value::Object(meta) = json!({format!("{META}digest"): digest}) else {
        return MetaObject::default();
    };
    MetaObject(meta)
}

fn mime_type(path: &RelPath) -> String {
    mime_guess::from_path(path.as_path())
        .first_or_octet_stream()
        .to_string()
}

/// The contents of a file, as text where it is text.
pub(crate) fn read(host: &Host, uri: &str) -> Result<ResourceContents, ErrorData> {
    let SkillUri {
        skill,
        path: Some(path),
    } = SkillUri::parse(uri)?
    else {
        return Err(unknown(uri));
    };
    let catalog = host.runtime.catalog();
    let entry = catalog.get(&skill).ok_or_else(|| unknown(uri))?;
    let bytes = entry
        .open()
        .and_then(|dir| dir.read(&on_disk(entry, &path), MAX_RESOURCE_BYTES))
        .map_err(|error| match error {
            SkillReadError::Io { .. } => failed(&error),
            SkillReadError::TooLarge { .. } => ErrorData::invalid_params(error.to_string(), None),
            _ => unknown(uri),
        })?;
    let digest = skillbox_model::Digest::from_sha256(Sha256::digest(&bytes).into());
    let meta = meta_of(format!("sha256:{}", digest.hex()));
    Ok(contents(uri, bytes, &mime_type(&path)).with_meta(meta))
}

/// Bytes as the protocol carries them.
pub(crate) fn contents(uri: &str, bytes: Vec<u8>, mime_type: &str) -> ResourceContents {
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => {
            let encoded = base64::engine::general_purpose::STANDARD.encode(error.as_bytes());
            ResourceContents::blob(encoded, uri)
        }
    };
    contents.with_mime_type(mime_type)
}
