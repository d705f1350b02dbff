//! Checks every signature that a skill has.

use super::error::SignatureError;
use super::minisign_manifest::check_manifest;
use super::oms::check_bundle;
use super::publisher::{Publisher, SignatureStatus, ValidSignature};
use crate::manifest::SkillManifest;

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

impl From<Result<Vec<ValidSignature>, SignatureError>> for SignatureStatus {
    fn from(result: Result<Vec<ValidSignature>, SignatureError>) -> Self {
        match result {
            Ok(signatures) if signatures.is_empty() => Self::Unsigned,
            Ok(signatures) => Self::Valid(signatures),
            Err(error) => Self::Invalid(error.to_string()),
        }
    }
}
