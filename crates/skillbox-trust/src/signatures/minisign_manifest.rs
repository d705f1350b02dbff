//! minisign over the manifest of a skill. `minisign -Vm skill.manifest -p KEY` checks the same signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minisign::{PublicKey, SecretKey, SecretKeyBox, sign};
use minisign_verify::Signature;

use super::error::SignatureError;
use super::publisher::{Publisher, SignatureMethod, ValidSignature};
use super::{BUNDLE_FILE, MANIFEST_FILE, MANIFEST_SIGNATURE_FILE};
use crate::manifest::SkillManifest;

/// Files that the manifest does not list: itself, its signature, and a bundle, which may be made afterwards.
const UNLISTED_FILES: &[&str] = &[MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, BUNDLE_FILE];

const COMMENT_PREFIX: &str = "untrusted comment: ";
/// `minisign` writes 38 bytes, and up to 1,023 if a user wants it.
const MAX_COMMENT_BYTES: usize = 120;

/// The manifest to store in the skill, and its signature by this minisign secret key.
///
/// `password` is needed exactly if the key file is encrypted.
pub fn sign_manifest(
    skill: &SkillManifest,
    secret_key: &str,
    password: Option<&str>,
    trusted_comment: &str,
) -> Result<(String, String), SignatureError> {
    let error = |problem: String| SignatureError::Key {
        what: "the minisign secret key".to_owned(),
        problem,
    };
    let secret_key = match password {
        Some(password) => SecretKeyBox::from_string(secret_key)
            .and_then(|key| key.into_secret_key(Some(password.to_owned())))
            .map_err(|problem| error(problem.to_string()))?,
        None => decode_unencrypted_key(secret_key).ok_or_else(|| {
            error("it is not a minisign secret key, or it is encrypted and needs its password".to_owned())
        })?,
    };
    let public_key = PublicKey::from_secret_key(&secret_key).map_err(|problem| error(problem.to_string()))?;
    let manifest = skill.without(UNLISTED_FILES).to_text();
    let signature = sign(
        Some(&public_key),
        &secret_key,
        manifest.as_bytes(),
        Some(trusted_comment),
        Some("signature of a skill by skillbox"),
    );
    let signature = signature.map_err(|problem| error(problem.to_string()))?;
    Ok((manifest, signature.into_string()))
}

/// Decodes a key without password. The library refuses such keys of the program `minisign`, whose checksum differs, and
/// would ask for a password on the terminal; the new signature is verified instead.
fn decode_unencrypted_key(text: &str) -> Option<SecretKey> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let key = SecretKey::from_bytes(&STANDARD.decode(line).ok()?).ok()?;
    (!key.is_encrypted()).then_some(key)
}

/// Whether the text has exactly the four lines of a signature, and a first line without any text that a shell or a
/// reader could act on: nobody signed that line.
fn has_strict_form(text: &str) -> bool {
    let lines: Vec<&str> = text.split('\n').collect();
    let [comment, signature, trusted, global, ""] = lines[..] else {
        return false;
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._,:@/+=-".contains(c);
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let comment = comment.strip_prefix(COMMENT_PREFIX);
    comment.is_some_and(|comment| comment.len() <= MAX_COMMENT_BYTES && comment.chars().all(is_plain))
        && signature.chars().all(is_base64)
        && trusted.starts_with("trusted comment: ")
        && global.chars().all(is_base64)
}

/// Checks the signature first, then compares the files of the skill with the signed manifest.
pub(super) fn check_manifest(
    publishers: &[Publisher],
    skill: &SkillManifest,
    manifest: &[u8],
    signature: &[u8],
) -> Result<ValidSignature, SignatureError> {
    let malformed = |file, problem: String| SignatureError::Malformed { file, problem };
    let signature = std::str::from_utf8(signature)
        .ok()
        .filter(|text| has_strict_form(text))
        .and_then(|text| Signature::decode(text).ok())
        .ok_or_else(|| {
            malformed(
                MANIFEST_SIGNATURE_FILE,
                "it is not a minisign signature of exactly four lines with a plain comment; sign the skill again"
                    .to_owned(),
            )
        })?;
    let mut tried = Vec::new();
    let signer = publishers.iter().find(|publisher| {
        let results: Vec<_> = publisher
            .minisign_keys
            .iter()
            .map(|key| key.verify(manifest, &signature, false))
            .collect();
        let problem = results.iter().find_map(|result| result.as_ref().err());
        if let Some(problem) = problem {
            tried.push(format!("{}: {problem}", publisher.name));
        }
        results.iter().any(Result::is_ok)
    });
    let Some(signer) = signer else {
        return Err(SignatureError::NoPublisher {
            file: MANIFEST_SIGNATURE_FILE,
            publishers: tried,
        });
    };
    let text = std::str::from_utf8(manifest).map_err(|error| malformed(MANIFEST_FILE, error.to_string()))?;
    let signed = SkillManifest::parse_text(text).map_err(|error| malformed(MANIFEST_FILE, error.to_string()))?;
    let changes = signed.changes_to(&skill.without(UNLISTED_FILES));
    if !changes.is_empty() {
        return Err(SignatureError::FilesDiffer {
            file: MANIFEST_FILE,
            changes,
        });
    }
    Ok(ValidSignature {
        publisher: signer.name.clone(),
        method: SignatureMethod::Minisign,
        covers_modes: true,
    })
}
