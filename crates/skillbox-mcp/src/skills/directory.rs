//! `resources/directory/read`: what lies directly in a directory of a skill.

use rmcp::ErrorData;
use rmcp::model::Resource;
use skillbox_model::RelPath;
use skillbox_repository::TreeEntryKind;

use super::file::{SkillFile, on_the_wire, resource};
use super::uri::{SkillUri, unknown, uri_of};
use crate::host::{Host, failed};
use crate::page::{Page, page};

pub(crate) const DIRECTORY_READ: &str = "resources/directory/read";
const DIRECTORY: &str = "inode/directory";
const PAGE: usize = 200;

/// The direct children, sorted by their URIs.
pub(crate) fn children(host: &Host, uri: &str, cursor: Option<&str>) -> Result<Page<Resource>, ErrorData> {
    let SkillUri { skill, path } = SkillUri::parse(uri)?;
    let catalog = host.runtime.catalog();
    let entry = catalog.get(&skill).ok_or_else(|| unknown(uri))?;
    let dir = entry.open().map_err(|error| failed(&error))?;
    let tree = dir.files().map_err(|error| failed(&error))?;
    let is_directory = |wanted: &RelPath| {
        let mut found = tree.iter().filter(|found| found.path == *wanted);
        found.any(|found| found.kind == TreeEntryKind::Dir)
    };
    if path.as_ref().is_some_and(|path| !is_directory(path)) {
        return Err(unknown(uri));
    }
    let mut children = Vec::new();
    for found in tree.iter().filter(|found| found.path.parent() == path) {
        match found.kind {
            TreeEntryKind::Dir => {
                let name = String::from_utf8_lossy(found.path.file_name()).into_owned();
                children.push(Resource::new(uri_of(&skill, &found.path), name).with_mime_type(DIRECTORY));
            }
            TreeEntryKind::Link { .. } if dir.open_file(&found.path).is_err() => {}
            TreeEntryKind::File { .. } | TreeEntryKind::Link { .. } => {
                let file = SkillFile {
                    path: on_the_wire(entry, &found.path),
                    on_disk: found.path.clone(),
                };
                children.push(resource(entry, &dir, &file).map_err(|error| failed(&error))?);
            }
        }
    }
    children.sort_by(|a, b| a.uri.cmp(&b.uri));
    page(children, |child| &child.uri, cursor, PAGE)
}
