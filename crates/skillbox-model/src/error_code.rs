//! The error object of all front ends, and its codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $text:literal, $remedy:literal;)*) => {
        /// A stable error code for programs. Codes may be added, but none changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode {
            $($(#[doc = $doc])* #[serde(rename = $text)] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The meaning of the code.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*).trim_ascii_start()),* }
            }

            /// What a caller can do.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy),* }
            }
        }
    };
}

error_codes! {
    /// The request does not have the documented form.
    InvalidRequest = "invalid_request", "correct the field that the error names";
    /// The catalog has no skill of that name.
    UnknownSkill = "unknown_skill", "see `skillbox list`; the message names the nearest skills";
    /// The skill has no such document or resource.
    UnknownDoc = "unknown_doc", "see `skillbox info NAME`; the message names the nearest documents";
    /// The dialect has no tool of that name.
    UnknownTool = "unknown_tool", "see `skillbox tools`";
    /// The skill exists but cannot be read.
    SkillUnreadable = "skill_unreadable", "run `skillbox validate --lenient` on it";
    /// The skill is disabled in this session.
    SkillDisabled = "skill_disabled", "enable it with `skill_enable`";
    /// Only the user may invoke the skill.
    ManualOnly = "manual_only", "call with `--caller user`, or remove `disable-model-invocation`";
    /// Only the model may invoke the skill.
    ModelOnly = "model_only", "let the model load it, or remove `user-invocable: false`";
    /// A path, glob or working directory would leave the workspace.
    PathEscape = "path_escape", "use a path below the workspace, without `..`";
    /// A `host://` input is outside the directories that the host allows.
    HostNotAllowed = "host_not_allowed", "start with `--allow-host DIR`";
    /// The source of an input does not exist.
    InputMissing = "input_missing", "check the reference in `from`";
    /// No profile of that name exists, or the host does not allow it.
    ProfileUnknown = "profile_unknown", "see `skillbox profiles list`";
    /// A profile cannot be parsed or contradicts itself.
    ProfileInvalid = "profile_invalid", "run `skillbox profiles check FILE`";
    /// This host cannot enforce a layer that the profile requires.
    IsolationUnavailable = "isolation_unavailable", "run `skillbox doctor` for the cause and the fix";
    /// The executor is not configured or not reachable.
    ExecutorUnavailable = "executor_unavailable", "run `skillbox doctor`";
    /// The executor is too old for skillbox.
    ExecutorOutdated = "executor_outdated", "update the Docker engine";
    /// The connection to the executor was lost during a run.
    ExecutorLost = "executor_lost", "check whether the Docker daemon was stopped, and run again";
    /// The executor's disk is full.
    ExecutorFull = "executor_full", "free disk space in the data directory of the Docker daemon";
    /// The container image of the runner is missing.
    ImageMissing = "image_missing", "run `skillbox docker build-runner`";
    /// The request exceeds a limit of the profile or the host.
    LimitExceeded = "limit_exceeded", "request less, or use another profile";
    /// The host requires the skill to be loaded before it runs.
    NotLoaded = "not_loaded", "call `skill_load` first";
    /// The tool policy blocks this call.
    ToolNotAllowed = "tool_not_allowed", "use one of the allowed tools that the message lists";
    /// The maximum number of skills is loaded.
    LoadLimit = "load_limit", "unload one with `skill_unload`";
    /// The deny list of the host names the skill or its digest.
    Denied = "denied", "remove the entry from `deny`, if the skill may run after all";
    /// The host runs only approved skills, and nobody approved this digest.
    NotApproved = "not_approved", "review the skill with `skillbox approve NAME`";
    /// The host runs only locked skills, and the lock file does not name this one.
    NotLocked = "not_locked", "add it with `skillbox lock NAME`";
    /// The skill differs from the version in the lock file.
    LockMismatch = "lock_mismatch", "see `skillbox lock --check`, then restore the files or run `skillbox lock NAME`";
    /// The skill has no valid signature of a publisher that the host requires.
    SignatureInvalid = "signature_invalid", "see `skillbox verify NAME`";
    /// The request needs a grant that nobody gave.
    GrantMissing = "grant_missing", "grant it with `skillbox approve NAME`, in the configuration, or for one call";
    /// A granted secret is not configured, or its source has no value.
    SecretMissing = "secret_missing", "see `skillbox secrets check`";
    /// The request contains the value of a secret, which only a grant brings into a run.
    SecretNotGranted = "secret_not_granted", "grant it with `--secret NAME`, `skillbox approve` or the configuration";
    /// The packages of the skill are not installed, and the host installs none when a skill runs.
    EnvironmentMissing = "environment_missing", "run `skillbox env build NAME`";
    /// The skill declares packages in a way that is not supported.
    EnvironmentInvalid = "environment_invalid", "correct the line that the message names, or run with `--environments off`";
    /// The packages of the skill cannot be installed.
    EnvironmentFailed = "environment_failed", "the message names the package and the cause; `--environments off` runs without packages";
    /// The store has no artifact of that name and version.
    ArtifactMissing = "artifact_missing", "see `skillbox artifacts list`";
    /// The object store of the artifacts is unreachable or too slow.
    StoreUnreachable = "store_unreachable", "check the network, `artifacts` and `artifacts_endpoint`";
    /// The object store refuses the credentials, or has received none.
    StoreDenied = "store_denied", "set the environment variables of its provider, and check their permissions";
    /// The bucket or container of the artifacts does not exist.
    BucketMissing = "bucket_missing", "create it, or correct `artifacts`";
    /// The message queue of a batch is unreachable, refuses the connection, or does not answer in time.
    QueueUnreachable = "queue_unreachable", "check `--queue`, its credentials, and that its servers run JetStream";
    /// No session of that id is stored.
    SessionUnknown = "session_unknown", "see `skillbox session list`";
    /// The server does not know the run, or no longer knows it.
    RunUnknown = "run_unknown", "see `GET /v1/runs`; results are kept for some minutes after the run";
    /// The run was deleted, or its result or its files have expired.
    RunGone = "run_gone", "start the run again; use a session, or save files as artifacts, to keep them longer";
    /// The server has no such path.
    NotFound = "not_found", "see `GET /openapi.json` for all paths";
    /// The request has no valid token, or its origin is not allowed.
    Unauthorized = "unauthorized", "send `Authorization: Bearer TOKEN` with a token of this server";
    /// The object exists already and is not overwritten.
    AlreadyExists = "already_exists", "choose another name, or remove the existing object";
    /// Another run or call uses a resource that this one needs.
    Busy = "busy", "try again later";
    /// The caller cancelled the run.
    Cancelled = "cancelled", "nothing to do";
    /// The config file of the working directory sets something that it may not set without the user's trust.
    UntrustedSetting = "untrusted_setting", "read the file, then run `skillbox config trust` in its directory";
    /// The storage of the host failed.
    Storage = "storage", "check free space and permissions of the state directory";
    /// skillbox itself failed.
    Internal = "internal", "report it, with the message";
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The object in `{"error": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The stable code.
    pub code: ErrorCode,
    /// What went wrong, with the name of the affected object.
    pub message: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The invalid field of the request, such as `inputs[0].to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl ErrorBody {
    /// An error with the remedy of its code as the hint. A long message is shortened.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: shorten(message.into(), MAX_MESSAGE_CHARS),
            hint: Some(code.remedy().to_owned()),
            field: None,
        }
    }

    /// Names the request field that the error is about.
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(shorten(field.into(), MAX_FIELD_CHARS));
        self
    }
}

/// Enough for every message of skillbox, including the text that it quotes.
const MAX_MESSAGE_CHARS: usize = 2_000;
const MAX_FIELD_CHARS: usize = 200;

/// Removes the middle of a long text, so that its start and its end stay readable.
fn shorten(text: String, max_chars: usize) -> String {
    let length = text.chars().count();
    if length <= max_chars {
        return text;
    }
    let head: String = text.chars().take(max_chars / 2).collect();
    let tail: String = text.chars().skip(length - max_chars / 2).collect();
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_serialize_as_their_name() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{code}\""));
            assert!(!code.meaning().is_empty() && !code.remedy().is_empty());
        }
        let distinct: std::collections::BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(distinct.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn a_long_message_loses_its_middle() {
        let body = ErrorBody::new(
            ErrorCode::ProfileUnknown,
            format!("no profile {} here", "é".repeat(100_000)),
        );
        assert!(body.message.chars().count() < 2_100);
        assert!(body.message.starts_with("no profile é") && body.message.ends_with("é here"));
        assert!(body.with_field("f".repeat(10_000)).field.unwrap().len() < 300);
    }
}
