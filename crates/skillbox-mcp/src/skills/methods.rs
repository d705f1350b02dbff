//! The methods of the extension.

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde::Deserialize;
use serde_json::{Value, json};

use super::directory::{DIRECTORY_READ, children};
use super::entry::skill_entry;
use super::file::skill_md;
use super::uri::{SkillUri, unknown};
use crate::host::{Host, failed};
use crate::page::page;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";
const LIST: &str = "skills/list";
const GET: &str = "skills/get";

/// Every entry is hashed when it is asked for, so pages are small.
const PAGE: usize = 50;

#[derive(Deserialize)]
struct Listing {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    uri: String,
    cursor: Option<String>,
}

/// Answers one request of the extension.
pub(crate) fn answer(
    host: &Host,
    method: &str,
    params: Option<Value>,
    version: Option<&ProtocolVersion>,
) -> Result<Value, ErrorData> {
    let mut result = match method {
        LIST => list(host, params)?,
        GET => get(host, &parsed::<Named>(params)?.uri)?,
        DIRECTORY_READ => {
            let Named { uri, cursor } = parsed(params)?;
            let page = children(host, &uri, cursor.as_deref())?;
            with_next(json!({"resources": page.items}), page.next)
        }
        other => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, other.to_owned(), None)),
    };
    // What stands in a result beside its data came with the stateless revision.
    if version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
        result["resultType"] = json!("complete");
        // Skills change on disk at any time; whoever keeps a list asks again.
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    Ok(result)
}

fn parsed<T: for<'de> Deserialize<'de>>(params: Option<Value>) -> Result<T, ErrorData> {
    let params = params.unwrap_or_else(|| json!({}));
    serde_json::from_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn list(host: &Host, params: Option<Value>) -> Result<Value, ErrorData> {
    let Listing { cursor } = parsed(params)?;
    let catalog = host.runtime.catalog();
    let mut skills: Vec<_> = catalog.skills().collect();
    skills.sort_by(|a, b| a.name().as_str().cmp(b.name().as_str()));
    let page = page(skills, |skill| skill.name().as_str(), cursor.as_deref(), PAGE)?;
    let mut listed = Vec::with_capacity(page.items.len());
    for entry in page.items {
        match skill_entry(entry) {
            Ok(entry) => listed.push(entry),
            // One broken skill never hides the others.
            Err(error) => tracing::warn!(skill = %entry.name(), "the skill cannot be listed: {error}"),
        }
    }
    Ok(with_next(json!({"skills": listed}), page.next))
}

fn get(host: &Host, uri: &str) -> Result<Value, ErrorData> {
    let asked = SkillUri::parse(uri)?;
    let catalog = host.runtime.catalog();
    let known = catalog.get(&asked.skill).filter(|_| asked.path == Some(skill_md()));
    let entry = known.ok_or_else(|| unknown(uri))?;
    let entry = skill_entry(entry).map_err(|error| failed(&error))?;
    Ok(json!({"skill": entry}))
}

fn with_next(mut result: Value, next: Option<String>) -> Value {
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    result
}
