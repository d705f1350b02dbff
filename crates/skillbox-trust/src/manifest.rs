//! The files of a skill with their digests.

use std::collections::BTreeMap;
use std::fmt;

use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, RelPath};

/// The maximum number of files. The loader does not accept larger skills.
pub const MAX_FILES: usize = 100_000;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file that its owner may not execute.
    File,
    /// A file that its owner may execute.
    Executable,
    /// A symbolic link inside the skill; its digest is that of the target's text.
    Link,
}

impl FileKind {
    /// The letter in the text form and in the digest of the skill.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::File => 'f',
            Self::Executable => 'x',
            Self::Link => 'l',
        }
    }

    fn from_letter(letter: &str) -> Option<Self> {
        [Self::File, Self::Executable, Self::Link]
            .into_iter()
            .find(|kind| letter == kind.letter().to_string())
    }
}

/// One file or link of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// The path below the skill.
    pub path: RelPath,
    /// The type.
    pub kind: FileKind,
    /// The digest of the content.
    pub sha256: Digest,
}

/// All files and links of a skill.
///
/// Invariants: sorted by path; each path once; at most [`MAX_FILES`]; every path is UTF-8 without control characters,
/// so that it can be shown, stored as JSON and written on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<ManifestFile>", into = "Vec<ManifestFile>")]
pub struct SkillManifest {
    files: BTreeMap<RelPath, (FileKind, Digest)>,
}

/// Why a list of files is not a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A name cannot be shown.
    #[error("the file name {0:?} is not UTF-8 or contains control characters; rename the file")]
    UnprintableName(RelPath),
    /// A path occurs twice.
    #[error("the file {0} occurs twice")]
    Duplicate(RelPath),
    /// There are too many files.
    #[error("the skill has more than {MAX_FILES} files")]
    TooManyFiles,
    /// A line of the text form is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, counted from one.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl SkillManifest {
    /// Checks a list of files, in any order.
    pub fn new(list: impl IntoIterator<Item = ManifestFile>) -> Result<Self, ManifestError> {
        let mut files = BTreeMap::new();
        for file in list {
            if file.path.to_str().is_none_or(|path| path.contains(char::is_control)) {
                return Err(ManifestError::UnprintableName(file.path));
            }
            if files.len() >= MAX_FILES {
                return Err(ManifestError::TooManyFiles);
            }
            let path = file.path.clone();
            if files.insert(file.path, (file.kind, file.sha256)).is_some() {
                return Err(ManifestError::Duplicate(path));
            }
        }
        Ok(Self { files })
    }

    /// The files, sorted by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&RelPath, FileKind, &Digest)> {
        self.files.iter().map(|(path, (kind, digest))| (path, *kind, digest))
    }

    /// This manifest without the files with these names.
    pub fn without(&self, names: &[&str]) -> Self {
        let is_kept = |path: &RelPath| !names.iter().any(|name| path.as_bytes() == name.as_bytes());
        Self {
            files: self
                .files
                .iter()
                .filter(|(path, _)| is_kept(path))
                .map(|(path, file)| (path.clone(), *file))
                .collect(),
        }
    }

    /// The digest of a skill with exactly these files. The format is that of `skillbox info`.
    pub fn digest(&self) -> Digest {
        let mut context = Context::new(&SHA256);
        context.update(b"skillbox-tree/1\0");
        for (path, kind, content) in self.files() {
            context.update(format!("{} {} ", kind.letter(), content.hex()).as_bytes());
            context.update(path.as_bytes());
            context.update(b"\0");
        }
        digest_of(context.finish())
    }

    /// The text form that is signed: a header, then one line `KIND SHA256 PATH` for each file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{TEXT_HEADER}\n");
        for (path, kind, content) in self.files() {
            text.push_str(&format!("{} {} {path}\n", kind.letter(), content.hex()));
        }
        text
    }

    /// Parses the text form. Only the exact output of [`Self::to_text`] is accepted.
    pub fn parse_text(text: &str) -> Result<Self, ManifestError> {
        let line_error = |line, problem: &str| ManifestError::Line {
            line,
            problem: problem.to_owned(),
        };
        let mut lines = text.split_inclusive('\n').enumerate();
        if lines
            .next()
            .is_none_or(|(_, line)| line.trim_end_matches('\n') != TEXT_HEADER)
        {
            return Err(line_error(1, "`skillbox-manifest/1` is expected"));
        }
        let mut list = Vec::new();
        let mut last: Option<RelPath> = None;
        for (index, line) in lines {
            let line_number = index + 1;
            let invalid = || line_error(line_number, "`KIND SHA256 PATH` and a line feed are expected");
            let (letter, rest) = line
                .strip_suffix('\n')
                .and_then(|line| line.split_once(' '))
                .ok_or_else(invalid)?;
            let (hex, path) = rest.split_once(' ').ok_or_else(invalid)?;
            let file = ManifestFile {
                path: RelPath::parse(path).map_err(|error| line_error(line_number, &error.to_string()))?,
                kind: FileKind::from_letter(letter).ok_or_else(invalid)?,
                sha256: Digest::parse(&format!("sha256:{hex}")).map_err(|_| invalid())?,
            };
            if last.as_ref().is_some_and(|last| *last >= file.path) {
                return Err(line_error(line_number, "the paths are not sorted"));
            }
            last = Some(file.path.clone());
            list.push(file);
        }
        Self::new(list)
    }

    /// How `newer` differs from this manifest, sorted by path.
    pub fn changes_to(&self, newer: &Self) -> Vec<FileChange> {
        let mut changes = Vec::new();
        for (path, old) in &self.files {
            let kind = match newer.files.get(path) {
                None => ChangeKind::Removed,
                Some(new) if new.1 != old.1 => ChangeKind::Content,
                Some(new) if new.0 != old.0 => ChangeKind::Mode,
                Some(_) => continue,
            };
            changes.push(FileChange {
                path: path.clone(),
                change: kind,
            });
        }
        let added = newer.files.keys().filter(|path| !self.files.contains_key(*path));
        changes.extend(added.map(|path| FileChange {
            path: path.clone(),
            change: ChangeKind::Added,
        }));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

const TEXT_HEADER: &str = "skillbox-manifest/1";

impl TryFrom<Vec<ManifestFile>> for SkillManifest {
    type Error = ManifestError;

    fn try_from(list: Vec<ManifestFile>) -> Result<Self, Self::Error> {
        Self::new(list)
    }
}

impl From<SkillManifest> for Vec<ManifestFile> {
    fn from(manifest: SkillManifest) -> Self {
        let files = manifest.files.into_iter();
        files
            .map(|(path, (kind, sha256))| ManifestFile { path, kind, sha256 })
            .collect()
    }
}

/// How one file of a skill changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The path below the skill.
    pub path: RelPath,
    /// What changed.
    pub change: ChangeKind,
}

/// What changed in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// The file no longer exists.
    Removed,
    /// The content differs.
    Content,
    /// Only the type or the executable bit differs.
    Mode,
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = match self.change {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Content => "changed",
            ChangeKind::Mode => "changed in its type or executable bit",
        };
        write!(f, "{} was {change}", self.path)
    }
}

/// A ring digest as our type.
pub(crate) fn digest_of(hash: ring::digest::Digest) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.as_ref());
    Digest::from_sha256(bytes)
}

/// The SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> Digest {
    digest_of(digest(&SHA256, bytes))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A manifest of plain files with these contents.
    pub(crate) fn manifest(files: &[(&str, &str)]) -> SkillManifest {
        SkillManifest::new(files.iter().map(|(path, content)| ManifestFile {
            path: RelPath::parse(path).unwrap(),
            kind: FileKind::File,
            sha256: sha256(content.as_bytes()),
        }))
        .unwrap()
    }

    fn any_manifest() -> impl Strategy<Value = SkillManifest> {
        let kind = prop_oneof![Just(FileKind::File), Just(FileKind::Executable), Just(FileKind::Link)];
        let file = ("[a-c]{1,2}(/[a-c é]{1,2})?", kind, 0_u8..4);
        prop::collection::vec(file, 0..8).prop_map(|files| {
            let files: BTreeMap<_, _> = files
                .into_iter()
                .map(|(path, kind, byte)| (path, (kind, byte)))
                .collect();
            SkillManifest::new(files.into_iter().map(|(path, (kind, byte))| ManifestFile {
                path: RelPath::parse(path).unwrap(),
                kind,
                sha256: sha256(&[byte]),
            }))
            .unwrap()
        })
    }

    proptest! {
        #[test]
        fn text_and_json_keep_everything(manifest in any_manifest()) {
            prop_assert_eq!(&SkillManifest::parse_text(&manifest.to_text()).unwrap(), &manifest);
            let json = serde_json::to_string(&manifest).unwrap();
            prop_assert_eq!(&serde_json::from_str::<SkillManifest>(&json).unwrap(), &manifest);
        }

        #[test]
        fn manifests_differ_exactly_if_their_digests_do(old in any_manifest(), new in any_manifest()) {
            let changes = old.changes_to(&new);
            prop_assert_eq!(changes.is_empty(), old == new);
            prop_assert_eq!(old.digest() == new.digest(), old == new);
        }
    }

    #[test]
    fn changes_are_named_file_by_file() {
        let old = manifest(&[("SKILL.md", "a"), ("gone", "b"), ("run.sh", "c")]);
        let mut list: Vec<ManifestFile> = manifest(&[("SKILL.md", "A"), ("new", "d"), ("run.sh", "c")]).into();
        list[2].kind = FileKind::Executable;
        let new = SkillManifest::new(list).unwrap();
        let texts: Vec<String> = old.changes_to(&new).iter().map(FileChange::to_string).collect();
        assert_eq!(
            texts,
            [
                "SKILL.md was changed",
                "gone was removed",
                "new was added",
                "run.sh was changed in its type or executable bit"
            ]
        );
    }

    #[test]
    fn a_text_that_is_not_exactly_a_manifest_is_refused() {
        let good = manifest(&[("a", "1"), ("b", "2")]).to_text();
        assert!(SkillManifest::parse_text(&good).is_ok());
        let lines: Vec<&str> = good.lines().collect();
        let reversed = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]);
        let twice = format!("{good}{}\n", lines[2]);
        for bad in [
            String::new(),
            good.trim_end().to_owned(),
            good.replace('\n', "\r\n"),
            good.replace("/1", "/2"),
            good.replace("f ", "F "),
            good.replace(" b\n", " ../b\n"),
            reversed,
            twice,
        ] {
            assert!(SkillManifest::parse_text(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_that_cannot_be_shown_are_refused() {
        for path in [&b"a\nb"[..], b"\xff", b"a\x1b[2J"] {
            let file = ManifestFile {
                path: RelPath::parse(path).unwrap(),
                kind: FileKind::File,
                sha256: sha256(b""),
            };
            assert!(matches!(
                SkillManifest::new([file]),
                Err(ManifestError::UnprintableName(_))
            ));
        }
    }
}
