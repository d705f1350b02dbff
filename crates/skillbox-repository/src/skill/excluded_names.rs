//! Names that are not part of a skill.

/// Whether entries of this name are excluded from skills at any depth.
///
/// `.git` differs between checkouts and may contain credentials; `__pycache__` is written when the skill runs.
pub(super) fn is_excluded_name(name: &[u8]) -> bool {
    matches!(name, b".git" | b"__pycache__")
}
