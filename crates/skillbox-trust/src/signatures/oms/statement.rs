//! The in-toto statement of a bundle: which files were signed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, RelPath};

use super::bundle::malformed;
use crate::manifest::{ChangeKind, FileChange, FileKind, SkillManifest, sha256};
use crate::signatures::{BUNDLE_FILE, SignatureError};

const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "https://model_signing/signature/v1.0";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Statement {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: Vec<Subject>,
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Predicate {
    serialization: Serialization,
    resources: Vec<Resource>,
    /// The executable files, which skillbox adds to what model_signing lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skillbox_executables: Option<BTreeSet<String>>,
}

#[derive(Serialize, Deserialize)]
struct Serialization {
    method: String,
    hash_type: String,
    #[serde(default)]
    allow_symlinks: bool,
    /// Paths that the signer did not sign. They are read and not honoured: only the bundle itself may be unsigned.
    #[serde(default)]
    ignore_paths: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

impl Statement {
    /// The statement about a skill with these files.
    pub(super) fn new(name: &str, skill: &SkillManifest) -> Result<Self, SignatureError> {
        let mut resources = Vec::new();
        for (path, kind, digest) in skill.without(&[BUNDLE_FILE]).files() {
            if kind == FileKind::Link {
                return Err(SignatureError::NotSignable(format!(
                    "{path} is a link, and a bundle lists only files; replace the link by a copy"
                )));
            }
            resources.push(Resource {
                name: path.to_string(),
                algorithm: "sha256".to_owned(),
                digest: digest.hex(),
            });
        }
        let digests = resources.iter().map(|resource| resource.digest.as_str());
        let root = root_digest(digests).ok_or_else(|| SignatureError::NotSignable("it has no files".to_owned()))?;
        Ok(Self {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: vec![Subject {
                name: name.to_owned(),
                digest: [("sha256".to_owned(), root.hex())].into(),
            }],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate {
                serialization: Serialization {
                    method: "files".to_owned(),
                    hash_type: "sha256".to_owned(),
                    allow_symlinks: false,
                    ignore_paths: vec![BUNDLE_FILE.to_owned()],
                },
                resources,
                skillbox_executables: Some(executables(skill)),
            },
        })
    }

    /// Parses a payload whose signature was verified.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, SignatureError> {
        let statement: Self =
            serde_json::from_slice(payload).map_err(|error| malformed(format!("its payload: {error}")))?;
        let expect = |condition: bool, problem: &str| {
            if condition {
                Ok(())
            } else {
                Err(malformed(problem.to_owned()))
            }
        };
        expect(
            statement.statement_type == STATEMENT_TYPE,
            "its payload is not an in-toto statement, version 1",
        )?;
        expect(
            statement.predicate_type == PREDICATE_TYPE,
            "its predicateType is not that of model_signing, version 1.0; sign the skill again",
        )?;
        let serialization = &statement.predicate.serialization;
        expect(
            serialization.method == "files" && serialization.hash_type == "sha256",
            "only the method `files` with the hash `sha256` is supported; sign the skill again with them",
        )?;
        expect(statement.subject.len() == 1, "it has not exactly one subject")?;
        Ok(statement)
    }

    /// Whether the statement says which files are executable.
    pub(super) fn covers_modes(&self) -> bool {
        self.predicate.skillbox_executables.is_some()
    }

    /// Compares the signed files with those of the skill. Every file but the bundle itself must be signed.
    pub(super) fn check_files(&self, skill: &SkillManifest) -> Result<(), SignatureError> {
        let resources = &self.predicate.resources;
        let mut signed = BTreeMap::new();
        for resource in resources {
            let path = RelPath::parse(&resource.name).map_err(|error| malformed(error.to_string()))?;
            let digest = Digest::parse(&format!("sha256:{}", resource.digest));
            let digest = digest.ok().filter(|_| resource.algorithm == "sha256");
            let digest = digest.ok_or_else(|| malformed(format!("{path} has no SHA-256 digest")))?;
            if signed.insert(path.clone(), digest).is_some() {
                return Err(malformed(format!("it lists {path} twice")));
            }
        }
        let root = root_digest(resources.iter().map(|resource| resource.digest.as_str())).map(|digest| digest.hex());
        if root.as_ref() != self.subject[0].digest.get("sha256") {
            return Err(malformed(
                "the digest of its subject does not fit its list of files".to_owned(),
            ));
        }
        let executable = executables(skill);
        let signed_executable = self.predicate.skillbox_executables.as_ref().unwrap_or(&executable);
        let has_other_mode = |path: &RelPath| {
            let path = path.to_string();
            executable.contains(&path) != signed_executable.contains(&path)
        };
        let mut changes = Vec::new();
        for (path, kind, digest) in skill.without(&[BUNDLE_FILE]).files() {
            let change = match signed.remove(path) {
                None => ChangeKind::Added,
                Some(_) if has_other_mode(path) => ChangeKind::Mode,
                Some(_) if kind == FileKind::Link => ChangeKind::Mode,
                Some(signed) if signed != *digest => ChangeKind::Content,
                Some(_) => continue,
            };
            changes.push(FileChange {
                path: path.clone(),
                change,
            });
        }
        let removed = signed.into_keys().map(|path| FileChange {
            path,
            change: ChangeKind::Removed,
        });
        changes.extend(removed);
        if changes.is_empty() {
            return Ok(());
        }
        Err(SignatureError::FilesDiffer {
            file: BUNDLE_FILE,
            changes,
        })
    }
}

fn executables(skill: &SkillManifest) -> BTreeSet<String> {
    let files = skill.files().filter(|(_, kind, _)| *kind == FileKind::Executable);
    files.map(|(path, ..)| path.to_string()).collect()
}

/// The SHA-256 over the digests of all files, in the order of the list; none if there is no file or a bad digest.
fn root_digest<'a>(digests: impl Iterator<Item = &'a str>) -> Option<Digest> {
    let mut bytes = Vec::new();
    for hex in digests {
        bytes.extend_from_slice(Digest::parse(&format!("sha256:{hex}")).ok()?.as_bytes());
    }
    (!bytes.is_empty()).then(|| sha256(&bytes))
}
