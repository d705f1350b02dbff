//! `skill://index.json`: the list of skills for clients of the extension's drafts, which look for it there.

use rmcp::model::{Resource, ResourceContents};
use serde_json::json;

use super::entry::skill_entry;
use super::file::{contents, measure, skill_md};
use super::uri::uri_of;
use crate::host::Host;

pub(crate) const INDEX_URI: &str = "skill://index.json";
const JSON: &str = "application/json";

/// The index as a resource.
pub(crate) fn index() -> Resource {
    Resource::new(INDEX_URI, "index.json")
        .with_description("Every skill of this server, with where its instructions are")
        .with_mime_type(JSON)
}

impl Host {
    /// The index itself; a skill that cannot be read is not in it.
    pub(crate) fn index(&self) -> ResourceContents {
        let catalog = self.runtime.catalog();
        let listed = catalog.skills().filter_map(|entry| {
            let dir = entry.open().ok()?;
            let on_disk = skillbox_model::RelPath::parse(entry.file_name().as_encoded_bytes()).ok()?;
            let (_, digest) = measure(&dir, &on_disk).ok()?;
            let uri = uri_of(entry.name().as_str(), &skill_md());
            let mut listed = skill_entry(entry).ok()?;
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
        contents(INDEX_URI, index.to_string().into_bytes(), JSON)
    }
}
