//! `skill://index.json`: the list of skills, for clients of the extension's drafts.

use rmcp::model::{Resource, ResourceContents};
use serde_json::json;

use super::file::{hash_file, skill_md_wire_path, to_contents};
use super::skill_json::skill_json;
use super::uri::file_uri;
use crate::server_state::ServerState;

pub(crate) const INDEX_URI: &str = "skill://index.json";
const JSON_MIME_TYPE: &str = "application/json";

/// The index as a resource.
pub(crate) fn index_resource() -> Resource {
    Resource::new(INDEX_URI, "index.json")
        .with_description("Every skill of this server, with the URI of its instructions")
        .with_mime_type(JSON_MIME_TYPE)
}

/// The contents of the index. It omits skills that cannot be read.
pub(crate) fn index_contents(server: &ServerState) -> ResourceContents {
    let catalog = server.runtime.catalog();
    let listed = catalog.skills().filter_map(|entry| {
        let dir = entry.open().ok()?;
        let disk_path = skillbox_model::RelPath::parse(entry.skill_md_name().as_encoded_bytes()).ok()?;
        let (_, digest) = hash_file(&dir, &disk_path).ok()?;
        let uri = file_uri(entry.name().as_str(), &skill_md_wire_path());
        let mut listed = skill_json(entry).ok()?;
        listed["name"] = json!(entry.name().as_str());
        listed["type"] = json!("skill-md");
        listed["description"] = json!(entry.meta.description);
        listed["url"] = json!(uri);
        listed["digest"] = json!(digest);
        Some(listed)
    });
    let index = json!({
        "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
        "skills": listed.collect::<Vec<_>>(),
    });
    to_contents(INDEX_URI, index.to_string().into_bytes(), JSON_MIME_TYPE)
}
