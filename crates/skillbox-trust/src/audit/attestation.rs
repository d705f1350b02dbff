//! The part of a record that links it to the one before: OCSF profile `record_integrity`.
//!
//! A line is canonical JSON (RFC 8785). The fingerprint is the SHA-256 of the line without `fingerprint` and
//! `signatures`. Both stand at fixed places of the line, so a check hashes bytes and parses nothing.
//!
//! The first of the signatures is a tag by the host key (HMAC-SHA-256 over fingerprint and checkpoint), which every
//! record has; the second one is that of a checkpoint, which anyone with the public key can verify.

use serde_json::{Map, Value, json};
use skillbox_model::Digest;

use crate::HostKey;
use crate::manifest::digest_of;

const LIST_START: &str = r#""attestation_list":[{"authority_uid":""#;
const CHAIN: &str = r#"","chain_uid":""#;
const FINGERPRINT: &str = r#""fingerprint":{"algorithm":"SHA-256","algorithm_id":3,"value":""#;
const PREVIOUS: &str = r#","prev_event":{"#;
const TAG: &str = r#","signatures":[{"algorithm":"HMAC-SHA-256","algorithm_id":99,"digest":{"algorithm":"HMAC-SHA-256","algorithm_id":99,"value":""#;
const CHECKPOINT: &str =
    r#",{"algorithm":"Ed25519","algorithm_id":99,"digest":{"algorithm":"Ed25519","algorithm_id":99,"value":""#;
const SIGNATURE_END: &str = r#""},"serialization_id":1}"#;
const SEQUENCE: &str = r#""profiles":["record_integrity"],"sequence":"#;
const HASH_DIGITS: usize = 64;
const SIGNATURE_DIGITS: usize = 128;

/// The attestation of a record that was checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attestation<'a> {
    pub(super) authority: &'a str,
    pub(super) chain: &'a str,
    pub(super) fingerprint: Digest,
    pub(super) previous: Option<Digest>,
    pub(super) tag: [u8; 32],
    pub(super) signature: Option<[u8; 64]>,
    pub(super) sequence: u64,
}

impl Attestation<'_> {
    /// Whether a process with the host key wrote the record.
    pub(super) fn has_tag_of(&self, key: &HostKey) -> bool {
        let signature = self.signature.as_ref().map_or(&[][..], |signature| &signature[..]);
        key.is_record_tag(self.fingerprint.as_bytes(), signature, &self.tag)
    }
}

/// The line of an event, and its fingerprint. `signer` makes it a checkpoint.
pub(super) fn to_line(
    mut fields: Map<String, Value>,
    chain: &str,
    previous: Option<&Digest>,
    key: &HostKey,
    is_checkpoint: bool,
) -> (String, Digest) {
    let mut attestation = json!({"authority_uid": key.id(), "chain_uid": chain});
    if let Some(previous) = previous {
        attestation["prev_event"] =
            json!({"fingerprint": {"algorithm": "SHA-256", "algorithm_id": 3, "value": previous.hex()}});
    }
    fields.insert("attestation_list".to_owned(), json!([attestation]));
    let mut line = serde_json_canonicalizer::to_string(&fields).expect("strings and numbers serialize");
    let fingerprint = hash(&[line.as_bytes()]);
    let mut position =
        line.find(LIST_START).unwrap_or_default() + LIST_START.len() + key.id().len() + CHAIN.len() + chain.len() + 1;
    let text = format!(",{FINGERPRINT}{}\"}}", fingerprint.hex());
    line.insert_str(position, &text);
    position += text.len();
    if previous.is_some() {
        position += PREVIOUS.len() + FINGERPRINT.len() + HASH_DIGITS + 3;
    }
    let signature = is_checkpoint.then(|| key.sign_checkpoint(fingerprint.as_bytes()));
    let signature = signature.as_ref().map_or(&[][..], |signature| &signature[..]);
    let tag = hex(&key.record_tag(fingerprint.as_bytes(), signature));
    let mut signatures = format!("{TAG}{tag}{SIGNATURE_END}");
    if is_checkpoint {
        signatures.push_str(&format!("{CHECKPOINT}{}{SIGNATURE_END}", hex(signature)));
    }
    signatures.push(']');
    line.insert_str(position, &signatures);
    line.push('\n');
    (line, fingerprint)
}

/// Checks that the fingerprint of a line fits its bytes. `line` has no line feed.
pub(super) fn check_line(line: &[u8]) -> Result<Attestation<'_>, &'static str> {
    const MALFORMED: &str = "it is not a record of the audit log";
    let text = std::str::from_utf8(line).map_err(|_| MALFORMED)?;
    let start = text.find(LIST_START).ok_or(MALFORMED)? + LIST_START.len();
    let (authority, rest) = text[start..].split_once('"').ok_or(MALFORMED)?;
    let (chain, rest) = rest
        .strip_prefix(&CHAIN[1..])
        .and_then(|rest| rest.split_once('"'))
        .ok_or(MALFORMED)?;
    let cut_start = text.len() - rest.len();
    let (fingerprint, rest) = rest.strip_prefix(',').and_then(split_fingerprint).ok_or(MALFORMED)?;
    let cut_end = text.len() - rest.len();
    let (previous, rest) = match rest.strip_prefix(PREVIOUS) {
        Some(rest) => {
            let (digest, rest) = split_fingerprint(rest).ok_or(MALFORMED)?;
            (Some(digest), rest.strip_prefix('}').ok_or(MALFORMED)?)
        }
        None => (None, rest),
    };
    let signature_start = text.len() - rest.len();
    let (tag, rest) = rest
        .strip_prefix(TAG)
        .and_then(|rest| rest.split_at_checked(HASH_DIGITS))
        .ok_or("it has no tag: no process of skillbox wrote it")?;
    let tag = *Digest::parse(&["sha256:", tag].concat())
        .map_err(|_| MALFORMED)?
        .as_bytes();
    let rest = rest.strip_prefix(SIGNATURE_END).ok_or(MALFORMED)?;
    let (signature, rest) = match rest.strip_prefix(CHECKPOINT) {
        Some(rest) => {
            let (digits, rest) = rest.split_at_checked(SIGNATURE_DIGITS).ok_or(MALFORMED)?;
            (
                Some(signature_bytes(digits).ok_or(MALFORMED)?),
                rest.strip_prefix(SIGNATURE_END).ok_or(MALFORMED)?,
            )
        }
        None => (None, rest),
    };
    let rest = rest.strip_prefix(']').ok_or(MALFORMED)?;
    if !rest.starts_with("}]") {
        return Err(MALFORMED);
    }
    let sequence = rest.split_once(SEQUENCE).and_then(|(_, rest)| rest.split_once(','));
    let sequence = sequence.and_then(|(digits, _)| digits.parse().ok()).ok_or(MALFORMED)?;
    let parts = [&text[..cut_start], &text[cut_end..signature_start], rest];
    if hash(&parts.map(str::as_bytes)) != fingerprint {
        return Err("its content does not fit its fingerprint: it was edited");
    }
    Ok(Attestation {
        authority,
        chain,
        fingerprint,
        previous,
        tag,
        signature,
        sequence,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn split_fingerprint(text: &str) -> Option<(Digest, &str)> {
    let (digits, rest) = text.strip_prefix(FINGERPRINT)?.split_at_checked(HASH_DIGITS)?;
    let digest = Digest::parse(&["sha256:", digits].concat()).ok()?;
    Some((digest, rest.strip_prefix("\"}")?))
}

fn signature_bytes(digits: &str) -> Option<[u8; 64]> {
    let (first, second) = digits.split_at_checked(HASH_DIGITS)?;
    let mut bytes = [0; 64];
    for (half, digits) in bytes.chunks_exact_mut(32).zip([first, second]) {
        half.copy_from_slice(Digest::parse(&["sha256:", digits].concat()).ok()?.as_bytes());
    }
    Some(bytes)
}

fn hash(parts: &[&[u8]]) -> Digest {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(part);
    }
    digest_of(context.finish())
}
