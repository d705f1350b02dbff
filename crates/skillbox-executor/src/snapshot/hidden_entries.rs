//! The entries of a skill that the links to the workspace hide, as far as its digest needs them.
//!
//! A snapshot does not have these entries, and nobody can compute the digest of the skill from its files alone. The file
//! beside the snapshot lists what the digest has of them, so that the whole digest is checked: a list that somebody made
//! up for another tree does not give the digest of the skill.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, RelPath};
use skillbox_runner::{TreeRecord, digest_of_records, tree_records};

use crate::layout::SKILL_LINKS;

/// The hidden entries of a snapshot, and the digest of the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HiddenEntries {
    /// The digest of the files that a script sees.
    pub(super) visible: Digest,
    hidden: Vec<HiddenEntry>,
}

/// What the digest of the skill has of one hidden entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HiddenEntry {
    pub(super) path: RelPath,
    pub(super) kind: char,
    pub(super) content: Digest,
}

impl HiddenEntries {
    /// The text of the file beside the snapshot in `directory`.
    pub(super) fn to_text(directory: &Path, hidden: Vec<HiddenEntry>) -> io::Result<String> {
        let visible = Digest::from_sha256(digest_of_records(&visible_records(directory)?));
        Ok(serde_json::to_string(&Self { visible, hidden })?)
    }

    /// Reads the file; `None` if there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the files in `directory`, together with the hidden ones, have the digest of the skill, and the links to the
/// workspace are right.
pub(super) fn is_snapshot_of(digest: &Digest, directory: &Path, hidden: Option<&HiddenEntries>) -> io::Result<bool> {
    for (name, target) in SKILL_LINKS {
        if fs::read_link(directory.join(name))?.as_os_str().as_bytes() != target.as_bytes() {
            return Ok(false);
        }
    }
    let mut records = visible_records(directory)?;
    if let Some(entries) = hidden {
        if digest_of_records(&records) != *entries.visible.as_bytes() {
            return Ok(false);
        }
        for entry in &entries.hidden {
            let first = entry.path.components().next().unwrap_or_default();
            let (true, Ok(kind)) = (is_hidden(first), u8::try_from(entry.kind)) else {
                return Ok(false);
            };
            records.push(TreeRecord {
                path: entry.path.as_bytes().to_vec(),
                kind,
                content: *entry.content.as_bytes(),
            });
        }
        records.sort_unstable();
    }
    Ok(digest_of_records(&records) == *digest.as_bytes())
}

/// Whether a link to the workspace hides the top-level entry with this name.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    SKILL_LINKS.iter().any(|(link, _)| link.as_bytes() == name)
}

fn visible_records(directory: &Path) -> io::Result<Vec<TreeRecord>> {
    let skip = SKILL_LINKS.map(|(name, _)| name.as_bytes());
    tree_records(File::open(directory)?.as_fd(), &skip)
}
