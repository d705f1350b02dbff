//! Checks every signature that a skill has.

use super::error::SignatureError;
use super::minisign_manifest::check_manifest;
use super::oms::check_bundle;
use super::publisher::{Publisher, SignatureStatus, ValidSignature};
use crate::manifest::{FileKind, SkillManifest};

/// The content of the signature files of a skill, as far as they exist. It must be read from the frozen skill.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignatureFiles<'a> {
    /// `skill.manifest`.
    pub manifest: Option<&'a [u8]>,
    /// `skill.manifest.minisig`.
    pub manifest_signature: Option<&'a [u8]>,
    /// `skill.oms.sig`.
    pub bundle: Option<&'a [u8]>,
}

/// Checks every signature that the skill has. A skill with one valid and one invalid signature is invalid.
pub fn check_signatures(
    publishers: &[Publisher],
    skill: &SkillManifest,
    files: SignatureFiles<'_>,
) -> Result<Vec<ValidSignature>, SignatureError> {
    check_kinds(skill)?;
    let mut valid = Vec::new();
    match (files.manifest, files.manifest_signature) {
        (Some(manifest), Some(signature)) => valid.push(check_manifest(publishers, skill, manifest, signature)?),
        (None, None) => {}
        (Some(_), None) => {
            return Err(SignatureError::Malformed {
                file: super::MANIFEST_SIGNATURE_FILE,
                problem: "it is missing beside the manifest".to_owned(),
            });
        }
        (None, Some(_)) => {
            return Err(SignatureError::Malformed {
                file: super::MANIFEST_FILE,
                problem: "it is missing beside its signature".to_owned(),
            });
        }
    }
    if let Some(bundle) = files.bundle {
        valid.push(check_bundle(publishers, skill, bundle)?);
    }
    Ok(valid)
}

/// No signature covers the signature files themselves, so they must not be able to be anything else: a link would bring
/// unsigned content into the skill, and a program could be run.
fn check_kinds(skill: &SkillManifest) -> Result<(), SignatureError> {
    let names = [super::MANIFEST_FILE, super::MANIFEST_SIGNATURE_FILE, super::BUNDLE_FILE];
    let kind_of = |name: &str| skill.files().find(|(path, ..)| path.as_bytes() == name.as_bytes());
    for file in names {
        let problem = match kind_of(file).map(|(_, kind, _)| kind) {
            None | Some(FileKind::File) => continue,
            Some(FileKind::Link) => "it is a link; a signature must be a file",
            Some(FileKind::Executable) => "it is executable; run `chmod -x` on it",
        };
        return Err(SignatureError::Malformed {
            file,
            problem: problem.to_owned(),
        });
    }
    Ok(())
}

impl From<Result<Vec<ValidSignature>, SignatureError>> for SignatureStatus {
    fn from(result: Result<Vec<ValidSignature>, SignatureError>) -> Self {
        match result {
            Ok(signatures) if signatures.is_empty() => Self::Unsigned,
            Ok(signatures) => Self::Valid(signatures),
            Err(error) => Self::Invalid(error.to_string()),
        }
    }
}
