//! One approval, and its authenticated text.

use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorCode, Grants, PublisherName, SkillName};

use crate::manifest::SkillManifest;
use crate::{HostKey, TrustError};

const SCHEMA_VERSION: u32 = 1;
/// Separates the tags of approvals from those of other files.
const TAG_DOMAIN: &[u8] = b"skillbox-approval/1\0";
const TAG_WORD: &str = "hmac-sha256";

/// A person's decision that one version of a skill may run, with these grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The version of the format.
    schema_version: u32,
    /// The name of the skill when it was approved.
    pub skill: SkillName,
    /// The approved digest. Any change of the skill gives another digest, and so voids the approval.
    pub digest: Digest,
    /// What runs of this version may do beyond their confinement.
    pub grants: Grants,
    /// The user who approved.
    pub approved_by: String,
    /// When, in milliseconds since 1970.
    pub approved_at_ms: u64,
    /// When the approval ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// A remark of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The publisher with a valid signature at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<PublisherName>,
    /// The end of the approval by a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    /// How many revocations this host had when it stored the approval; set by the store.
    #[serde(default)]
    pub(super) after_revocations: u64,
    /// The files of the approved version, to which the next version is compared.
    pub files: SkillManifest,
}

/// Who ended an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// The user who revoked it.
    pub revoked_by: String,
    /// When, in milliseconds since 1970.
    pub revoked_at_ms: u64,
    /// A remark of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whether an approval counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It counts.
    Valid,
    /// Its time is over.
    Expired,
    /// A user ended it.
    Revoked,
}

impl Approval {
    /// A new approval of a skill with these files.
    pub fn new(
        skill: SkillName,
        files: SkillManifest,
        grants: Grants,
        approved_by: impl Into<String>,
        approved_at_ms: u64,
    ) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            skill,
            digest: files.digest(),
            grants,
            approved_by: approved_by.into(),
            approved_at_ms,
            expires_at_ms: None,
            note: None,
            signer: None,
            revocation: None,
            after_revocations: 0,
            files,
        }
    }

    /// Whether the approval counts at this time.
    pub fn state(&self, now_ms: u64) -> ApprovalState {
        if self.revocation.is_some() {
            ApprovalState::Revoked
        } else if self.expires_at_ms.is_some_and(|expires| expires <= now_ms) {
            ApprovalState::Expired
        } else {
            ApprovalState::Valid
        }
    }

    /// The text of the file: the approval as one line of canonical JSON, and a line with its tag.
    pub(super) fn to_text(&self, key: &HostKey) -> String {
        let json = serde_json_canonicalizer::to_string(self).expect("strings and numbers serialize");
        let tag = key.approval_tag(&[TAG_DOMAIN, json.as_bytes()].concat());
        let hex: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{json}\n{TAG_WORD} {} {hex}\n", key.id())
    }

    /// Checks the tag of a text before anything else, then parses it.
    pub(super) fn parse(text: &[u8], path: &Path, key: &HostKey) -> Result<Self, TrustError> {
        let not_authentic = |problem: String| TrustError::NotAuthentic {
            code: ErrorCode::NotApproved,
            path: path.to_owned(),
            problem: format!("{problem}; review the skill and approve it again"),
        };
        let lines = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.strip_suffix('\n')?.split_once('\n'));
        let tag =
            lines.and_then(|(json, tag)| Some((json, tag.strip_prefix(TAG_WORD)?.strip_prefix(' ')?.split_once(' ')?)));
        let Some((json, (key_id, hex))) = tag else {
            return Err(not_authentic("its last line is not the tag of a host key".to_owned()));
        };
        if key_id != key.id() {
            return Err(not_authentic(format!(
                "it has the tag of another host key, {key_id:.20}"
            )));
        }
        let tag =
            Digest::parse(&format!("sha256:{hex}")).map_err(|_| not_authentic("its tag is damaged".to_owned()))?;
        if !key.is_approval_tag(&[TAG_DOMAIN, json.as_bytes()].concat(), tag.as_bytes()) {
            return Err(not_authentic("it was changed after it was written".to_owned()));
        }
        let approval: Self =
            serde_json::from_str(json).map_err(|error| TrustError::json(ErrorCode::NotApproved, path, &error))?;
        if approval.schema_version != SCHEMA_VERSION || approval.files.digest() != approval.digest {
            return Err(TrustError::Malformed {
                code: ErrorCode::NotApproved,
                path: path.to_owned(),
                line: Some(1),
                problem: "another version of skillbox wrote it; approve the skill again".to_owned(),
            });
        }
        Ok(approval)
    }
}
