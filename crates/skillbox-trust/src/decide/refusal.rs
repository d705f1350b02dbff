//! Why a skill may not run.

use std::fmt;

use skillbox_model::{Digest, ErrorBody, ErrorCode, Grants, PublisherName, SkillName};

use super::policy::DenyEntry;

/// A skill may not run. The text names the skill, its digest, the reason and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The skill.
    pub skill: SkillName,
    /// The digest of the frozen skill.
    pub digest: Digest,
    /// The reason.
    pub reason: RefusalReason,
}

/// The reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The deny list names it.
    Denied(DenyEntry),
    /// A signature is required, and the skill has none.
    Unsigned(Vec<PublisherName>),
    /// The skill has a signature that is not valid.
    SignatureInvalid(String),
    /// The signature is that of a publisher who is not required.
    OtherPublisher(Vec<PublisherName>),
    /// Nobody approved the digest.
    NotApproved,
    /// The approval has expired.
    ApprovalExpired,
    /// The approval was revoked by this user.
    ApprovalRevoked(String),
    /// There is no lock file.
    NoLockFile,
    /// The lock file does not name the skill.
    NotLocked,
    /// The lock file has another digest.
    LockMismatch(Digest),
    /// The request needs these grants.
    GrantMissing(Grants),
}

impl Refusal {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match &self.reason {
            RefusalReason::Denied(_) => ErrorCode::Denied,
            RefusalReason::Unsigned(_) | RefusalReason::SignatureInvalid(_) | RefusalReason::OtherPublisher(_) => {
                ErrorCode::SignatureInvalid
            }
            RefusalReason::NotApproved | RefusalReason::ApprovalExpired | RefusalReason::ApprovalRevoked(_) => {
                ErrorCode::NotApproved
            }
            RefusalReason::NoLockFile | RefusalReason::NotLocked => ErrorCode::NotLocked,
            RefusalReason::LockMismatch(_) => ErrorCode::LockMismatch,
            RefusalReason::GrantMissing(_) => ErrorCode::GrantMissing,
        }
    }

    /// The command or change that lets the skill run.
    pub fn fix(&self) -> String {
        let skill = quote(self.skill.as_str());
        match &self.reason {
            RefusalReason::Denied(entry) => format!("remove {entry} from `deny` in the configuration of the host"),
            RefusalReason::Unsigned(_) | RefusalReason::SignatureInvalid(_) | RefusalReason::OtherPublisher(_) => {
                format!(
                    "see `skillbox verify {skill}`; a required publisher signs with `skillbox sign {skill} --key KEY`"
                )
            }
            RefusalReason::NotApproved | RefusalReason::ApprovalExpired | RefusalReason::ApprovalRevoked(_) => {
                format!("review it with `skillbox approve {skill}`")
            }
            RefusalReason::NoLockFile | RefusalReason::NotLocked => format!("add it with `skillbox lock {skill}`"),
            RefusalReason::LockMismatch(_) => {
                format!("see `skillbox lock --check`; restore the files, or accept them with `skillbox lock {skill}`")
            }
            RefusalReason::GrantMissing(missing) => {
                format!("grant it with `{}`", approve_command(&self.skill, missing))
            }
        }
    }

    /// The error object of all front ends.
    pub fn to_error_body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code(), self.to_string());
        body.hint = Some(self.fix());
        body
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the skill {} ({}) may not run: ", self.skill, self.digest)?;
        match &self.reason {
            RefusalReason::Denied(entry) => write!(f, "the deny list names {entry}"),
            RefusalReason::Unsigned(required) => write!(f, "it is not signed, and {} must sign", join(required)),
            RefusalReason::SignatureInvalid(problem) => write!(f, "its signature is not valid: {problem}"),
            RefusalReason::OtherPublisher(required) => {
                write!(f, "its signature is valid, but not one of {}", join(required))
            }
            RefusalReason::NotApproved => write!(f, "this version is not approved"),
            RefusalReason::ApprovalExpired => write!(f, "its approval has expired"),
            RefusalReason::ApprovalRevoked(user) => write!(f, "{user} revoked its approval"),
            RefusalReason::NoLockFile => write!(f, "there is no lock file"),
            RefusalReason::NotLocked => write!(f, "the lock file does not name it"),
            RefusalReason::LockMismatch(locked) => write!(f, "the lock file has {locked}"),
            RefusalReason::GrantMissing(missing) => write!(f, "{missing} is not granted"),
        }
    }
}

fn join(publishers: &[PublisherName]) -> String {
    let names: Vec<&str> = publishers.iter().map(PublisherName::as_str).collect();
    names.join(" or ")
}

/// The command that grants this to a skill.
pub fn approve_command(skill: &SkillName, grants: &Grants) -> String {
    format!(
        "skillbox approve {} {}",
        quote(skill.as_str()),
        grants.options().join(" ")
    )
}

/// A name for a command line.
fn quote(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().all(is_plain) && !name.starts_with('-') {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}
