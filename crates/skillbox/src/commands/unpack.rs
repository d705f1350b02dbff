//! Writes the skills of a catalogue to a directory, file by file.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use skillbox_model::{ErrorCode, RelPath};
use skillbox_repository::{Catalog, TreeEntryKind};

use crate::failure::Failure;

/// More than any file of a skill that is worth unpacking.
const MAX_FILE: u64 = 64 << 20;

/// Unpacks every skill into a directory of its name below `target`; gives those directories.
pub fn unpack(catalog: &Catalog, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut dirs = Vec::new();
    for entry in catalog.skills() {
        let dir = target.join(entry.name().as_str());
        let unreadable = |error| Failure::from_error(ErrorCode::SkillUnreadable, &error);
        let skill = entry.open().map_err(unreadable)?;
        for file in skill.files().map_err(unreadable)? {
            if let TreeEntryKind::File { executable, .. } = file.kind {
                let bytes = skill.read(&file.path, MAX_FILE).map_err(unreadable)?;
                write(&dir, &file.path, &bytes, executable).map_err(|error| {
                    Failure::new(
                        ErrorCode::Storage,
                        format!("cannot write {}: {error}", dir.join(file.path.as_path()).display()),
                    )
                })?;
            }
        }
        dirs.push(dir);
    }
    Ok(dirs)
}

fn write(dir: &Path, path: &RelPath, bytes: &[u8], executable: bool) -> io::Result<()> {
    let path = dir.join(path.as_path());
    fs::create_dir_all(path.parent().unwrap_or(dir))?;
    fs::write(&path, bytes)?;
    fs::set_permissions(
        &path,
        fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }),
    )
}
