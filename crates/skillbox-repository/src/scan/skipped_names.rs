//! Directories that a scan does not enter.

/// Version control, caches and installed packages do not contain skills of their own.
const SKIPPED_NAMES: [&[u8]; 4] = [b".git", b"node_modules", b".venv", b"__pycache__"];

/// Whether a scan skips directories of this name.
pub(super) fn is_skipped_name(name: &[u8]) -> bool {
    SKIPPED_NAMES.contains(&name)
}
