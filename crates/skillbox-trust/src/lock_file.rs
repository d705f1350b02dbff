//! `skillbox.lock`: the versions of skills that a project uses, with the digest of each file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorCode, PublisherName, SkillName};

use crate::TrustError;
use crate::manifest::{FileChange, SkillManifest};
use crate::private_file::{read_limited, replace_file};

/// The usual name of the file.
pub const LOCK_FILE_NAME: &str = "skillbox.lock";
const SCHEMA_VERSION: u32 = 1;
/// Enough for some hundred thousand files.
const MAX_LOCK_BYTES: u64 = 64 << 20;

/// One skill in a lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSkill {
    /// The name.
    pub name: SkillName,
    /// The digest of the skill.
    pub digest: Digest,
    /// Where the skill was found, for people. It is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The publisher with a valid signature when the skill was locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<PublisherName>,
    /// The digest of each file.
    pub files: SkillManifest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockDocument {
    schema_version: u32,
    skills: Vec<LockedSkill>,
}

/// A lock file. Skills are sorted by name, so that the same skills give the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFile {
    skills: BTreeMap<SkillName, LockedSkill>,
}

impl LockFile {
    /// Reads a lock file; `None` if there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, TrustError> {
        let Some(content) = read_limited(path, MAX_LOCK_BYTES, ErrorCode::LockMismatch)? else {
            return Ok(None);
        };
        Self::parse(&content, path).map(Some)
    }

    fn parse(content: &[u8], path: &Path) -> Result<Self, TrustError> {
        let malformed = |problem| TrustError::Malformed {
            code: ErrorCode::LockMismatch,
            path: path.to_owned(),
            line: None,
            problem,
        };
        // The version is checked first: a later format may have fields that this version does not know.
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let json_error = |error| TrustError::json(ErrorCode::LockMismatch, path, &error);
        let version: Version = serde_json::from_slice(content).map_err(json_error)?;
        if version.schema_version != SCHEMA_VERSION {
            return Err(malformed(format!(
                "its schema_version is {}; this skillbox reads {SCHEMA_VERSION}",
                version.schema_version
            )));
        }
        let document: LockDocument = serde_json::from_slice(content).map_err(json_error)?;
        let mut lock = Self::default();
        for skill in document.skills {
            if skill.files.digest() != skill.digest {
                return Err(malformed(format!(
                    "the digest of {} does not fit its list of files; run `skillbox lock {}`",
                    skill.name, skill.name
                )));
            }
            if let Some(other) = lock.skills.insert(skill.name.clone(), skill) {
                return Err(malformed(format!("{} occurs twice", other.name)));
            }
        }
        Ok(lock)
    }

    /// Writes the file in one step.
    pub fn write(&self, path: &Path) -> Result<(), TrustError> {
        replace_file(path, self.to_json().as_bytes(), 0o644)
    }

    /// The content of the file.
    pub fn to_json(&self) -> String {
        let document = LockDocument {
            schema_version: SCHEMA_VERSION,
            skills: self.skills.values().cloned().collect(),
        };
        let json = serde_json::to_string_pretty(&document).expect("strings and numbers serialize");
        format!("{json}\n")
    }

    /// Adds a skill, or replaces it.
    pub fn insert(&mut self, skill: LockedSkill) {
        self.skills.insert(skill.name.clone(), skill);
    }

    /// Removes a skill. Returns whether the file had it.
    pub fn remove(&mut self, name: &SkillName) -> bool {
        self.skills.remove(name).is_some()
    }

    /// The locked version of a skill.
    pub fn get(&self, name: &SkillName) -> Option<&LockedSkill> {
        self.skills.get(name)
    }

    /// All skills, sorted by name.
    pub fn skills(&self) -> impl ExactSizeIterator<Item = &LockedSkill> {
        self.skills.values()
    }

    /// Every difference between the file and the skills that were found, sorted by name.
    pub fn differences<'a>(
        &self,
        found: impl IntoIterator<Item = (&'a SkillName, &'a SkillManifest)>,
    ) -> Vec<LockDifference> {
        let found: BTreeMap<_, _> = found.into_iter().collect();
        let mut differences = Vec::new();
        for locked in self.skills.values() {
            match found.get(&locked.name) {
                None => differences.push(LockDifference::Missing {
                    skill: locked.name.clone(),
                }),
                Some(manifest) if **manifest != locked.files => differences.push(LockDifference::Changed {
                    skill: locked.name.clone(),
                    locked: locked.digest,
                    found: manifest.digest(),
                    changes: locked.files.changes_to(manifest),
                }),
                Some(_) => {}
            }
        }
        let not_locked = found.keys().filter(|name| !self.skills.contains_key(**name));
        differences.extend(not_locked.map(|name| LockDifference::NotLocked { skill: (*name).clone() }));
        differences.sort_by(|a, b| a.skill().cmp(b.skill()));
        differences
    }
}

/// A difference between a lock file and the skills that were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum LockDifference {
    /// The file does not name this skill.
    NotLocked {
        /// The name.
        skill: SkillName,
    },
    /// The locked skill was not found.
    Missing {
        /// The name.
        skill: SkillName,
    },
    /// The files differ.
    Changed {
        /// The name.
        skill: SkillName,
        /// The digest in the file.
        locked: Digest,
        /// The current digest.
        found: Digest,
        /// The changed files.
        changes: Vec<FileChange>,
    },
}

impl LockDifference {
    /// The skill that differs.
    pub fn skill(&self) -> &SkillName {
        match self {
            Self::NotLocked { skill } | Self::Missing { skill } | Self::Changed { skill, .. } => skill,
        }
    }
}

impl fmt::Display for LockDifference {
    /// One line for each file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLocked { skill } => write!(f, "{skill}: not in the lock file"),
            Self::Missing { skill } => write!(f, "{skill}: locked, but not found"),
            Self::Changed { skill, changes, .. } => {
                let lines: Vec<String> = changes.iter().map(|change| format!("{skill}: {change}")).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;

    fn locked(name: &str, files: &[(&str, &str)]) -> LockedSkill {
        let files = manifest(files);
        LockedSkill {
            name: SkillName::parse(name).unwrap(),
            digest: files.digest(),
            source: Some("./skills".to_owned()),
            signer: None,
            files,
        }
    }

    #[test]
    fn the_order_of_skills_does_not_change_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(LOCK_FILE_NAME);
        assert!(LockFile::read(&path).unwrap().is_none());
        let (mut one, mut two) = (LockFile::default(), LockFile::default());
        one.insert(locked("b", &[("SKILL.md", "b")]));
        one.insert(locked("a", &[("SKILL.md", "a"), ("x/y", "z")]));
        two.insert(locked("a", &[("SKILL.md", "a"), ("x/y", "z")]));
        two.insert(locked("b", &[("SKILL.md", "b")]));
        assert_eq!(one.to_json(), two.to_json());
        one.write(&path).unwrap();
        assert_eq!(LockFile::read(&path).unwrap().unwrap(), two);
    }

    #[test]
    fn an_edited_file_is_refused_with_its_line() {
        let path = Path::new("skillbox.lock");
        let mut lock = LockFile::default();
        lock.insert(locked("a", &[("SKILL.md", "a")]));
        let json = lock.to_json();
        assert_eq!(LockFile::parse(json.as_bytes(), path).unwrap(), lock);
        let other = crate::manifest::sha256(b"other").hex();
        for (edited, words) in [
            (
                json.replace("\"schema_version\": 1", "\"schema_version\": 2"),
                "this skillbox reads 1",
            ),
            (
                json.replace("\"source\"", "\"unsigned\": true, \"source\""),
                "unknown field `unsigned`",
            ),
            (
                json.replace("    {\n      \"name\"", "<<<<<<< ours\n    {\n      \"name\""),
                "skillbox.lock:4 ",
            ),
            (
                json.replacen(&crate::manifest::sha256(b"a").hex(), &other, 1),
                "does not fit its list of files",
            ),
            (json.replace("SKILL.md", "../SKILL.md"), "`..`"),
            (String::new(), "EOF"),
        ] {
            let error = LockFile::parse(edited.as_bytes(), path).expect_err(words);
            assert_eq!(error.code(), ErrorCode::LockMismatch);
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn differences_name_every_file() {
        let mut lock = LockFile::default();
        lock.insert(locked("a", &[("SKILL.md", "a")]));
        lock.insert(locked("b", &[("SKILL.md", "b"), ("run.sh", "1")]));
        lock.insert(locked("c", &[("SKILL.md", "c")]));
        let names = ["a", "b", "d"].map(|name| SkillName::parse(name).unwrap());
        let manifests = [
            manifest(&[("SKILL.md", "a")]),
            manifest(&[("SKILL.md", "b"), ("more", ""), ("run.sh", "2")]),
            manifest(&[("SKILL.md", "d")]),
        ];
        let differences = lock.differences(names.iter().zip(&manifests));
        let text: Vec<String> = differences.iter().map(LockDifference::to_string).collect();
        assert_eq!(
            text.join("\n"),
            "b: more was added\nb: run.sh was changed\nc: locked, but not found\nd: not in the lock file"
        );
    }
}
