//! Answers the requests of the extension.

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde::Deserialize;
use serde_json::{Value, json};

use super::directory::{DIRECTORY_READ, list_children};
use super::file::skill_md_wire_path;
use super::skill_json::skill_json;
use super::uri::{SkillUri, unknown_resource};
use crate::blocking::internal_error;
use crate::page::paginate;
use crate::server_state::ServerState;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";
const SKILLS_LIST: &str = "skills/list";
const SKILLS_GET: &str = "skills/get";

/// Small, because the files of every listed skill are hashed.
const PAGE_SIZE: usize = 50;

#[derive(Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct UriParams {
    uri: String,
    cursor: Option<String>,
}

/// Answers one request of the extension.
pub(crate) fn answer(
    server: &ServerState,
    method: &str,
    params: Option<Value>,
    version: Option<&ProtocolVersion>,
) -> Result<Value, ErrorData> {
    let mut result = match method {
        SKILLS_LIST => list(server, params)?,
        SKILLS_GET => get(server, &parse_params::<UriParams>(params)?.uri)?,
        DIRECTORY_READ => {
            let UriParams { uri, cursor } = parse_params(params)?;
            let page = list_children(server, &uri, cursor.as_deref())?;
            with_next_cursor(json!({"resources": page.items}), page.next)
        }
        other => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, other.to_owned(), None)),
    };
    // The stateless revision added these fields to every result.
    if version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
        result["resultType"] = json!("complete");
        // Skills may change on disk at any time, so a client must not cache the list.
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    Ok(result)
}

fn parse_params<T: for<'de> Deserialize<'de>>(params: Option<Value>) -> Result<T, ErrorData> {
    let params = params.unwrap_or_else(|| json!({}));
    serde_json::from_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn list(server: &ServerState, params: Option<Value>) -> Result<Value, ErrorData> {
    let ListParams { cursor } = parse_params(params)?;
    let catalog = server.runtime.catalog();
    let mut skills: Vec<_> = catalog.skills().collect();
    skills.sort_by(|a, b| a.name().as_str().cmp(b.name().as_str()));
    let page = paginate(skills, |skill| skill.name().as_str(), cursor.as_deref(), PAGE_SIZE)?;
    let mut listed = Vec::with_capacity(page.items.len());
    for entry in page.items {
        match skill_json(entry) {
            Ok(entry) => listed.push(entry),
            // A broken skill does not hide the others.
            Err(error) => tracing::warn!(skill = %entry.name(), "the skill cannot be listed: {error}"),
        }
    }
    Ok(with_next_cursor(json!({"skills": listed}), page.next))
}

fn get(server: &ServerState, uri: &str) -> Result<Value, ErrorData> {
    let requested = SkillUri::parse(uri)?;
    let catalog = server.runtime.catalog();
    let found = catalog
        .get(&requested.skill)
        .filter(|_| requested.path == Some(skill_md_wire_path()));
    let entry = found.ok_or_else(|| unknown_resource(uri))?;
    let entry = skill_json(entry).map_err(|error| internal_error(&error))?;
    Ok(json!({"skill": entry}))
}

fn with_next_cursor(mut result: Value, next: Option<String>) -> Value {
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    result
}
