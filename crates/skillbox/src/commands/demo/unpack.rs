//! Writes the skills of a catalog to a directory.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use skillbox_model::{ErrorCode, RelPath};
use skillbox_repository::{Catalog, TreeEntryKind};

use crate::failure::Failure;

/// Larger files are refused; no built-in skill has one.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Writes every skill to `target/NAME` and returns those directories.
pub fn unpack_skills(catalog: &Catalog, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut dirs = Vec::new();
    for entry in catalog.skills() {
        let dir = target.join(entry.name().as_str());
        let unreadable = |error| Failure::from_error(ErrorCode::SkillUnreadable, &error);
        let skill = entry.open().map_err(unreadable)?;
        for file in skill.tree_entries().map_err(unreadable)? {
            if let TreeEntryKind::File { is_executable, .. } = file.kind {
                let bytes = skill.read_file(&file.path, MAX_FILE_BYTES).map_err(unreadable)?;
                write_file(&dir, &file.path, &bytes, is_executable).map_err(|error| {
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

fn write_file(dir: &Path, path: &RelPath, bytes: &[u8], is_executable: bool) -> io::Result<()> {
    let path = dir.join(path.as_path());
    fs::create_dir_all(path.parent().unwrap_or(dir))?;
    fs::write(&path, bytes)?;
    fs::set_permissions(
        &path,
        fs::Permissions::from_mode(if is_executable { 0o755 } else { 0o644 }),
    )
}
