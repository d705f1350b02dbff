//! Checks the paths of a profile on this host: what would fail at launch is an error of the profile.

use std::fs;
use std::path::Path;

use super::diagnostics::Diagnostics;
use super::document::ProfileDocument;
use super::yaml;

/// Reports every visible path that cannot be mounted on this host.
pub(super) fn check_host_paths(document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    let Some(section) = &document.filesystem else { return };
    for entry in &section.visible {
        let path = Path::new(&entry.value.path);
        let mut report = |message: String, hint: &str| {
            diagnostics.add_with_hint(yaml::location(entry), "profile_path", message, hint.to_owned());
        };
        match fs::symlink_metadata(path) {
            Err(_) if entry.value.optional => {}
            Err(error) => report(
                format!("{} cannot be made visible: {error}", path.display()),
                "correct the path, or write `optional: true` if some hosts do not have it",
            ),
            Ok(metadata) if !metadata.is_dir() && !metadata.is_file() && !metadata.is_symlink() => report(
                format!("{} is neither a file, a directory nor a link", path.display()),
                "make the directory that contains it visible",
            ),
            Ok(_) => {}
        }
    }
}
