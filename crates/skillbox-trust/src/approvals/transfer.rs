//! Approvals on their way to another host, signed with the key of the host that gave them.

use std::path::Path;

use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use skillbox_model::ErrorCode;

use super::approval::Approval;
use crate::host_key::public_key_id;
use crate::{HostKey, TrustError};

const SCHEMA_VERSION: u32 = 1;
const SIGNATURE_WORD: &str = "ed25519";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Export {
    schema_version: u32,
    approvals: Vec<Approval>,
}

/// The text of an export: one line of canonical JSON, and a line with its signature.
pub fn export_approvals(approvals: Vec<Approval>, key: &HostKey) -> String {
    let export = Export {
        schema_version: SCHEMA_VERSION,
        approvals,
    };
    let json = serde_json_canonicalizer::to_string(&export).expect("strings and numbers serialize");
    let signature: String = key
        .sign_export(json.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{json}\n{SIGNATURE_WORD} {} {signature}\n", key.id())
}

/// Checks the signature of an export with the public key of the other host, then parses it.
pub fn read_exported_approvals(text: &[u8], path: &Path, public_key: &[u8; 32]) -> Result<Vec<Approval>, TrustError> {
    let not_authentic = |problem: &str| TrustError::NotAuthentic {
        code: ErrorCode::NotApproved,
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let lines = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.strip_suffix('\n')?.split_once('\n'));
    let signed = lines.and_then(|(json, line)| {
        let (id, hex) = line.strip_prefix(SIGNATURE_WORD)?.strip_prefix(' ')?.split_once(' ')?;
        Some((json, id, hex))
    });
    let (json, id, hex) = signed.ok_or_else(|| not_authentic("its last line is not the signature of a host"))?;
    if id != public_key_id(public_key) {
        return Err(not_authentic("another host signed it than the one whose key was given"));
    }
    let signature = decode_hex(hex).ok_or_else(|| not_authentic("its signature is damaged"))?;
    let key = UnparsedPublicKey::new(&ED25519, public_key);
    if key
        .verify(&HostKey::export_message(json.as_bytes()), &signature)
        .is_err()
    {
        return Err(not_authentic("it was changed after it was signed"));
    }
    let export: Export =
        serde_json::from_str(json).map_err(|error| TrustError::json(ErrorCode::NotApproved, path, &error))?;
    let is_complete = |approval: &Approval| approval.files.digest() == approval.digest;
    if export.schema_version != SCHEMA_VERSION || !export.approvals.iter().all(is_complete) {
        return Err(TrustError::Malformed {
            code: ErrorCode::NotApproved,
            path: path.to_owned(),
            line: Some(1),
            problem: "another version of skillbox wrote it".to_owned(),
        });
    }
    Ok(export.approvals)
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len() == 128 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    is_hex.then(|| (0..128).step_by(2).map(byte).collect::<Option<_>>())?
}

#[cfg(test)]
mod tests {
    use skillbox_model::{Grants, SkillName};

    use super::*;
    use crate::manifest::tests::manifest;

    #[test]
    fn an_export_is_read_with_the_key_of_its_host_and_only_unchanged() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = HostKey::open(here.path()).unwrap();
        let other_key = HostKey::open(there.path()).unwrap();
        let files = manifest(&[("SKILL.md", "one")]);
        let name = SkillName::parse("report").unwrap();
        let approval = Approval::new(name, files, Grants::default(), "alice", 7);
        let text = export_approvals(vec![approval.clone()], &key);
        let path = Path::new("approvals.export");
        let read = |text: &str, key: &HostKey| read_exported_approvals(text.as_bytes(), path, &key.public_key());
        assert_eq!(read(&text, &key).unwrap(), [approval]);
        let error = read(&text, &other_key).unwrap_err().to_string();
        assert!(error.contains("another host signed it"), "{error}");
        for changed in [
            text.replace("alice", "mallo"),
            text.replace("\ned", "\n ed"),
            String::new(),
        ] {
            assert!(read(&changed, &key).is_err(), "{changed}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(
                read_exported_approvals(&bytes, path, &key.public_key()).is_err(),
                "byte {at}"
            );
        }
    }
}
