//! Where things lie below the root of a store.
//!
//! ```text
//! cas/sha256/<first two digits>/<all digits>                      one blob, written once
//! artifacts/<scope>/n-<part>/n-<part>/v000000.json                the record of one version
//! artifacts/<scope>/n-<part>/n-<part>/v000000.removed             a number that stays used
//! tmp/                                                            files on their way to one of the above
//! ```
//! The parts of a name carry a prefix, so that no name can meet a record. The same keys serve an object store.

use std::path::{Path, PathBuf};

use skillbox_model::Digest;

use crate::{ArtifactName, Scope};

pub(crate) const RECORD: &str = "json";
pub(crate) const REMOVED: &str = "removed";
const NAME_PREFIX: &str = "n-";

pub(crate) fn blob(digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    Path::new("cas/sha256").join(&hex[..2]).join(hex)
}

pub(crate) fn scope(scope: &Scope) -> PathBuf {
    let base = Path::new("artifacts");
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
