//! A skill as `skills/list` and `skills/get` return it.

use serde_json::{Map, Value, json};
use skillbox_repository::{SkillEntry, SkillReadError, frontmatter_json};

use super::file::{list_files, measure, skill_md};
use super::uri::file_uri;

/// The extension's limits for one skill. A larger skill is listed without its files.
const MAX_RESOURCES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;

/// The entry of a skill: its URI, its frontmatter, and every file with size and digest.
pub(crate) fn skill_entry(entry: &SkillEntry) -> Result<Value, SkillReadError> {
    let dir = entry.open()?;
    let text = dir.read_skill_md()?.whole;
    let frontmatter = frontmatter_json(&text).unwrap_or_default();
    Ok(json!({
        "uri": file_uri(entry.name().as_str(), &skill_md()),
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
        let (size, digest) = measure(dir, &file.on_disk)?;
        total += size;
        let uri = file_uri(entry.name().as_str(), &file.path);
        listed.push(json!({"uri": uri, "digest": digest, "size": size}));
    }
    if total > MAX_BYTES {
        return Ok(json!("dynamic"));
    }
    Ok(Value::Array(listed))
}
