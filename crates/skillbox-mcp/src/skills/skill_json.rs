//! A skill as `skills/list` and `skills/get` return it.

use serde_json::{Map, Value, json};
use skillbox_repository::{SkillEntry, SkillReadError, frontmatter_json};

use super::file::{hash_file, list_files, skill_md_wire_path};
use super::uri::file_uri;

/// The extension's limit on the files of one skill. A larger skill is listed without its files.
const MAX_RESOURCES: usize = 512;
/// The extension's limit on the size of one skill. A larger skill is listed without its files.
const MAX_SKILL_BYTES: u64 = 16 << 20;

/// A skill as JSON: its URI, its frontmatter, and every file with size and digest.
pub(crate) fn skill_json(entry: &SkillEntry) -> Result<Value, SkillReadError> {
    let dir = entry.open()?;
    let text = dir.read_skill_md()?.whole;
    let frontmatter = frontmatter_json(&text).unwrap_or_default();
    Ok(json!({
        "uri": file_uri(entry.name().as_str(), &skill_md_wire_path()),
        "frontmatter": with_name(frontmatter, entry),
        "resources": resources(entry, &dir)?,
    }))
}

/// Adds the name from the catalog to a frontmatter without a name of its own.
fn with_name(mut frontmatter: Map<String, Value>, entry: &SkillEntry) -> Map<String, Value> {
    if !frontmatter.get("name").is_some_and(Value::is_string) {
        frontmatter.insert("name".to_owned(), json!(entry.name().as_str()));
    }
    frontmatter
}

fn resources(entry: &SkillEntry, dir: &skillbox_repository::SkillDir) -> Result<Value, SkillReadError> {
    let files = list_files(entry, dir)?;
    if files.len() > MAX_RESOURCES {
        return Ok(json!("dynamic"));
    }
    let mut total = 0;
    let mut listed = Vec::with_capacity(files.len());
    for file in files {
        let (size, digest) = hash_file(dir, &file.disk_path)?;
        total += size;
        let uri = file_uri(entry.name().as_str(), &file.wire_path);
        listed.push(json!({"uri": uri, "digest": digest, "size": size}));
    }
    if total > MAX_SKILL_BYTES {
        return Ok(json!("dynamic"));
    }
    Ok(Value::Array(listed))
}
