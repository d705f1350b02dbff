//! One skill as `skills/list` and `skills/get` give it.

use serde_json::{Map, Value, json};
use skillbox_repository::{SkillEntry, SkillReadError, frontmatter_json};

use super::file::{files, measure, skill_md};
use super::uri::uri_of;

/// What hosts must be able to take of one skill. A larger one is announced without a list of its files.
const MAX_RESOURCES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;

/// The entry of a skill: where it is, what it says of itself, and every file with size and digest.
pub(crate) fn skill_entry(entry: &SkillEntry) -> Result<Value, SkillReadError> {
    let dir = entry.open()?;
    let text = dir.instructions()?.whole;
    let frontmatter = frontmatter_json(&text).unwrap_or_default();
    Ok(json!({
        "uri": uri_of(entry.name().as_str(), &skill_md()),
        "frontmatter": named_as_served(frontmatter, entry),
        "resources": resources(entry, &dir)?,
    }))
}

/// The name that clients meet is the catalogue's, where that had to be understood rather than read.
fn named_as_served(mut frontmatter: Map<String, Value>, entry: &SkillEntry) -> Map<String, Value> {
    if !frontmatter.get("name").is_some_and(Value::is_string) {
        frontmatter.insert("name".to_owned(), json!(entry.name().as_str()));
    }
    frontmatter
}

fn resources(entry: &SkillEntry, dir: &skillbox_repository::SkillDir) -> Result<Value, SkillReadError> {
    let files = files(entry, dir)?;
    if files.len() > MAX_RESOURCES {
        return Ok(json!("dynamic"));
    }
    let mut total = 0;
    let mut listed = Vec::with_capacity(files.len());
    for file in files {
        let (size, digest) = measure(dir, &file.on_disk)?;
        total += size;
        let uri = uri_of(entry.name().as_str(), &file.path);
        listed.push(json!({"uri": uri, "digest": digest, "size": size}));
    }
    if total > MAX_BYTES {
        return Ok(json!("dynamic"));
    }
    Ok(Value::Array(listed))
}
