//! `resources/directory/read`: lists the direct children of a directory of a skill.

use rmcp::ErrorData;
use rmcp::model::Resource;
use skillbox_model::RelPath;
use skillbox_repository::TreeEntryKind;

use super::file::{SkillFile, file_resource, wire_path};
use super::uri::{SkillUri, file_uri, unknown_resource};
use crate::blocking::internal_error;
use crate::page::{Page, paginate};
use crate::server_state::ServerState;

pub(crate) const DIRECTORY_READ: &str = "resources/directory/read";
const DIRECTORY_MIME_TYPE: &str = "inode/directory";
const PAGE_SIZE: usize = 200;

/// The direct children, sorted by URI.
pub(crate) fn list_children(
    server: &ServerState,
    uri: &str,
    cursor: Option<&str>,
) -> Result<Page<Resource>, ErrorData> {
    let SkillUri { skill, path } = SkillUri::parse(uri)?;
    let catalog = server.runtime.catalog();
    let entry = catalog.get(&skill).ok_or_else(|| unknown_resource(uri))?;
    let dir = entry.open().map_err(|error| internal_error(&error))?;
    let tree = dir.tree_entries().map_err(|error| internal_error(&error))?;
    let is_directory = |wanted: &RelPath| {
        let mut found = tree.iter().filter(|found| found.path == *wanted);
        found.any(|found| found.kind == TreeEntryKind::Dir)
    };
    if path.as_ref().is_some_and(|path| !is_directory(path)) {
        return Err(unknown_resource(uri));
    }
    let mut children = Vec::new();
    for found in tree.iter().filter(|found| found.path.parent() == path) {
        match found.kind {
            TreeEntryKind::Dir => {
                let name = String::from_utf8_lossy(found.path.file_name()).into_owned();
                children.push(Resource::new(file_uri(&skill, &found.path), name).with_mime_type(DIRECTORY_MIME_TYPE));
            }
            TreeEntryKind::Link { .. } if dir.open_file(&found.path).is_err() => {}
            TreeEntryKind::File { .. } | TreeEntryKind::Link { .. } => {
                let file = SkillFile {
                    wire_path: wire_path(entry, &found.path),
                    disk_path: found.path.clone(),
                };
                children.push(file_resource(entry, &dir, &file).map_err(|error| internal_error(&error))?);
            }
        }
    }
    children.sort_by(|a, b| a.uri.cmp(&b.uri));
    paginate(children, |child| &child.uri, cursor, PAGE_SIZE)
}
