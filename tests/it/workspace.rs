//! The root of the workspace, and its files.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The root directory of the workspace.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        package
            .ancestors()
            .nth(2)
            .expect("the package is in crates/")
            .to_owned()
    });
    &ROOT
}

/// Every file below a directory, without build results; empty where the directory is missing.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a readable tree");
            let is_built = ["target", ".git", "node_modules", "__pycache__"]
                .iter()
                .any(|name| entry.file_name() == *name);
            if kind.is_dir() && !is_built {
                pending.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}
