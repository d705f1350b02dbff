//! Where things lie below the root of a store.
//!
//! ```text
//! cas/sha256/<first two digits>/<all digits>                      one blob, written once
//! artifacts/<scope>/n-<part>/n-<part>/v000000.json                the record of one version
//! artifacts/<scope>/n-<part>/n-<part>/v000000.removed             a number that stays used
//! tmp/                                                            files on their way to one of the above
//! tenants/<tenant>/                                               the same again, for one tenant of a server
//! ```
//! The parts of a name carry a prefix, so that no name can meet a record. Object stores have the same keys, with odd
//! characters escaped (`object/keys.rs`); there a removed number is an *empty* record, because replacing an object is
//! one step, and a mark beside it would be two.

use std::path::{Path, PathBuf};

use skillbox_model::Digest;

use crate::{ArtifactName, Scope};

/// Below it are the scopes.
pub(crate) const ARTIFACTS: &str = "artifacts";
pub(crate) const BLOBS: &str = "cas/sha256";
pub(crate) const RECORD: &str = "json";
pub(crate) const REMOVED: &str = "removed";
pub(crate) const TENANTS: &str = "tenants";
pub(crate) const NAME_PREFIX: &str = "n-";

pub(crate) fn blob(digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    Path::new(BLOBS).join(&hex[..2]).join(hex)
}

pub(crate) fn scope(scope: &Scope) -> PathBuf {
    let base = Path::new(ARTIFACTS);
    match scope {
        Scope::User => base.join("user"),
        Scope::Session(id) => base.join(format!("session-{id}")),
    }
}

pub(crate) fn versions(of: &Scope, name: &ArtifactName) -> PathBuf {
    let mut path = scope(of);
    path.extend(name.as_str().split('/').map(|part| format!("{NAME_PREFIX}{part}")));
    path
}

pub(crate) fn version_file(version: u64, extension: &str) -> String {
    format!("v{version:06}.{extension}")
}

/// The version and kind of a file in a directory of versions, or none for anything else.
pub(crate) fn parse_version_file(file_name: &str) -> Option<(u64, &str)> {
    let (stem, extension) = file_name.rsplit_once('.')?;
    let version = stem.strip_prefix('v')?.parse().ok()?;
    matches!(extension, RECORD | REMOVED).then_some((version, extension))
}

/// The part of a name that a directory stands for.
pub(crate) fn name_part(directory: &str) -> Option<&str> {
    directory.strip_prefix(NAME_PREFIX)
}

/// One component of a path or key from any text: what every file system and object store takes stays, the rest becomes
/// `=` and two digits for each byte. Two texts never give the same.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        // A dot at an end is special somewhere: `.`, `..`, and names that Azure refuses.
        let is_dot_at_end = byte == b'.' && (at == 0 || at + 1 == text.len());
        if byte.is_ascii_alphanumeric() || (b"._-".contains(&byte) && !is_dot_at_end) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("={byte:02X}"));
        }
    }
    escaped
}

/// The text behind a component, or none where it is not of our making.
pub(crate) fn unescaped(component: &str) -> Option<String> {
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
    fn odd_characters_are_escaped() {
        for (text, component) in [
            ("report-1.svg", "report-1.svg"),
            ("a b", "a=20b"),
            ("ü", "=C3=BC"),
            ("a=20b", "a=3D20b"),
            (".", "=2E"),
            ("..", "=2E=2E"),
            ("end.", "end=2E"),
        ] {
            assert_eq!(escaped(text), component);
            assert_eq!(unescaped(component).as_deref(), Some(text));
        }
        for strange in ["=", "=2", "=ZZ", "=FF"] {
            assert_eq!(unescaped(strange), None, "{strange}");
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(text in "\\PC{0,40}") {
            let component = escaped(&text);
            prop_assert!(component.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-=".contains(&byte)));
            prop_assert_eq!(unescaped(&component), Some(text));
        }
    }
}
