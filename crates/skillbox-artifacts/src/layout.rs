//! The layout of a store below its root.
//!
//! ```text
//! cas/sha256/<first two digits>/<all digits>                      one blob, written once
//! artifacts/<scope>/n-<part>/n-<part>/v000000.json                the record of one version
//! artifacts/<scope>/n-<part>/n-<part>/v000000.removed             marks a removed version
//! tmp/                                                            unfinished files
//! tenants/<tenant>/                                               the same layout for one tenant of a server
//! ```
//!
//! The parts of a name have a prefix, so that a name cannot collide with a record. In an object store, the keys follow
//! the same layout, with special characters escaped (`bucket/keys.rs`). There an *empty* record marks a removed version,
//! because one object can be replaced atomically, but two objects cannot be changed together.

use std::path::{Path, PathBuf};

use skillbox_model::Digest;

use crate::{ArtifactName, Scope};

/// Contains the scopes.
pub(crate) const ARTIFACTS: &str = "artifacts";
/// Contains the blobs.
pub(crate) const BLOBS: &str = "cas/sha256";
/// The extension of a record.
pub(crate) const RECORD_EXTENSION: &str = "json";
/// The extension of the mark of a removed version.
pub(crate) const REMOVED_EXTENSION: &str = "removed";
/// Contains the stores of tenants.
pub(crate) const TENANTS: &str = "tenants";
/// The prefix of the directory of one part of a name.
pub(crate) const NAME_PART_PREFIX: &str = "n-";

pub(crate) fn blob_path(digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    Path::new(BLOBS).join(&hex[..2]).join(hex)
}

pub(crate) fn scope_path(scope: &Scope) -> PathBuf {
    let base = Path::new(ARTIFACTS);
    match scope {
        Scope::User => base.join("user"),
        Scope::Session(id) => base.join(format!("session-{id}")),
    }
}

/// The directory that contains the versions of a name.
pub(crate) fn versions_path(scope: &Scope, name: &ArtifactName) -> PathBuf {
    let mut path = scope_path(scope);
    path.extend(name.as_str().split('/').map(|part| format!("{NAME_PART_PREFIX}{part}")));
    path
}

pub(crate) fn version_file(version: u64, extension: &str) -> String {
    format!("v{version:06}.{extension}")
}

/// The version and the extension of a version file; none for other files.
pub(crate) fn parse_version_file(file_name: &str) -> Option<(u64, &str)> {
    let (stem, extension) = file_name.rsplit_once('.')?;
    let version = stem.strip_prefix('v')?.parse().ok()?;
    matches!(extension, RECORD_EXTENSION | REMOVED_EXTENSION).then_some((version, extension))
}

/// The part of a name that a directory represents.
pub(crate) fn name_part(directory: &str) -> Option<&str> {
    directory.strip_prefix(NAME_PART_PREFIX)
}

/// Escapes a text to one component of a path or key. Characters that every file system and object store accepts stay;
/// every other byte becomes `=` and two hexadecimal digits. Different texts give different components.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        // Leading and trailing dots are special: `.`, `..`, and names that Azure rejects.
        let is_outer_dot = byte == b'.' && (at == 0 || at + 1 == text.len());
        if byte.is_ascii_alphanumeric() || (b"._-".contains(&byte) && !is_outer_dot) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("={byte:02X}"));
        }
    }
    escaped
}

/// The text of an escaped component; none if `escape` cannot have produced it.
pub(crate) fn unescape(component: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(component.len());
    let mut rest = component.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'=' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        for (text, component) in [
            ("report-1.svg", "report-1.svg"),
            ("a b", "a=20b"),
            ("ü", "=C3=BC"),
            ("a=20b", "a=3D20b"),
            (".", "=2E"),
            ("..", "=2E=2E"),
            ("end.", "end=2E"),
        ] {
            assert_eq!(escape(text), component);
            assert_eq!(unescape(component).as_deref(), Some(text));
        }
        for invalid in ["=", "=2", "=ZZ", "=FF"] {
            assert_eq!(unescape(invalid), None, "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn unescape_reverses_escape(text in "\\PC{0,40}") {
            let component = escape(&text);
            prop_assert!(component.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-=".contains(&byte)));
            prop_assert_eq!(unescape(&component), Some(text));
        }
    }
}
