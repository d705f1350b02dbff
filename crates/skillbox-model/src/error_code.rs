//! The error object that every front door gives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $text:literal, $fix:literal;)*) => {
        /// A stable code for programs. New ones may come; none changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode {
            $($(#[doc = $doc])* #[serde(rename = $text)] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// What the code means.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*).trim_ascii_start()),* }
            }

            /// What a caller can do about it.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $fix),* }
            }
        }
    };
}

error_codes! {
    /// The request is not of the documented form.
    InvalidRequest = "invalid_request", "correct the field that the error names";
    /// No skill of that name is in the catalogue.
    UnknownSkill = "unknown_skill", "see `skillbox list`; the message names the nearest";
    /// The skill has no such document or resource.
    UnknownDoc = "unknown_doc", "see `skillbox info NAME`; the message names the nearest";
    /// No tool of that name exists in this dialect.
    UnknownTool = "unknown_tool", "see `skillbox tools`";
    /// The skill is there but cannot be read.
    SkillUnreadable = "skill_unreadable", "run `skillbox validate --lenient` on it";
    /// The skill is disabled in this session.
    SkillDisabled = "skill_disabled", "enable it with `skill_enable`";
    /// The skill may be started by a person only.
    ManualOnly = "manual_only", "call with `--caller user`, or drop `disable-model-invocation`";
    /// A path, glob or working directory would leave the workspace.
    PathEscape = "path_escape", "use a path below the workspace, without `..`";
    /// A `host://` input lies outside the directories that the host allows.
    HostNotAllowed = "host_not_allowed", "start with `--allow-host DIR`";
    /// An input's source does not exist.
    InputMissing = "input_missing", "check the reference in `from`";
    /// No profile of that name exists, or the host does not allow it.
    ProfileUnknown = "profile_unknown", "see `skillbox profiles list`";
    /// A profile does not parse or contradicts itself.
    ProfileInvalid = "profile_invalid", "run `skillbox profiles check FILE`";
    /// This host cannot give a layer that the profile requires.
    IsolationUnavailable = "isolation_unavailable", "run `skillbox doctor` for the cause and the fix";
    /// The executor is not configured or not reachable.
    ExecutorUnavailable = "executor_unavailable", "run `skillbox doctor`";
    /// The executor is too old to give what a run needs.
    ExecutorOutdated = "executor_outdated", "update the Docker engine";
    /// The executor was lost in the middle of a run.
    ExecutorLost = "executor_lost", "see whether the Docker daemon was stopped, and run again";
    /// The executor has no room left on its disk.
    ExecutorFull = "executor_full", "free space where the Docker daemon keeps its data";
    /// The container image of the runner is missing.
    ImageMissing = "image_missing", "run `skillbox docker build-runner`";
    /// A limit of the request is over what the profile or the host allows.
    LimitExceeded = "limit_exceeded", "ask for less, or use another profile";
    /// The host requires the skill to be loaded before it runs.
    NotLoaded = "not_loaded", "call `skill_load` first";
    /// The tool policy blocks this call.
    ToolNotAllowed = "tool_not_allowed", "use one of the allowed tools that the message lists";
    /// As many skills are loaded as the host allows.
    LoadLimit = "load_limit", "unload one with `skill_unload`";
    /// No artifact of that name and version is stored.
    ArtifactMissing = "artifact_missing", "see `skillbox artifacts list`";
    /// The object store of the artifacts cannot be reached, or answers too slowly.
    StoreUnreachable = "store_unreachable", "check the network, `artifacts` and `artifacts_endpoint`";
    /// The object store refuses the credentials, or was given none.
    StoreDenied = "store_denied", "set the variables of its provider, and check what they may do";
    /// The bucket or container of the artifacts does not exist.
    BucketMissing = "bucket_missing", "create it, or correct `artifacts`";
    /// No session of that name is stored.
    SessionUnknown = "session_unknown", "see `skillbox session list`";
    /// No run of that name is known, or no longer.
    RunUnknown = "run_unknown", "see `GET /v1/runs`; the results of ended runs are kept for some minutes";
    /// Nothing is served at that address.
    NotFound = "not_found", "see `GET /openapi.json` for what there is";
    /// The caller does not show who it is, or comes from where nobody is let in.
    Unauthorized = "unauthorized", "send `Authorization: Bearer TOKEN` with a token of this server";
    /// The thing exists already and is never overwritten.
    AlreadyExists = "already_exists", "choose another name, or remove the old one";
    /// Another run or call holds what this one needs.
    Busy = "busy", "try again later";
    /// The caller cancelled.
    Cancelled = "cancelled", "nothing to do";
    /// The host's own storage failed.
    Storage = "storage", "check space and rights of the state directory";
    /// skillbox itself failed.
    Internal = "internal", "report it with the message";
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The inside of `{"error": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The stable code.
    pub code: ErrorCode,
    /// What went wrong, with the thing named.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The field of the request that is wrong, such as `inputs[0].to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl ErrorBody {
    /// An error with the code's own remedy as its hint. A message that quotes too much is cut.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: shorten(message.into(), MAX_MESSAGE),
            hint: Some(code.remedy().to_owned()),
            field: None,
        }
    }

    /// The same, about one field of the request.
    pub fn in_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(shorten(field.into(), MAX_FIELD));
        self
    }
}

/// Enough for any message of ours, and for what it needs to quote.
const MAX_MESSAGE: usize = 2_000;
const MAX_FIELD: usize = 200;

/// Cuts a text in the middle, so that both what is wrong and why stay readable.
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
    fn codes_are_unique_and_written_as_they_are_named() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{code}\""));
            assert!(!code.meaning().is_empty() && !code.remedy().is_empty());
        }
        let distinct: std::collections::BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(distinct.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn a_message_that_quotes_too_much_is_cut_in_the_middle() {
        let body = ErrorBody::new(
            ErrorCode::ProfileUnknown,
            format!("no profile {} here", "é".repeat(100_000)),
        );
        assert!(body.message.chars().count() < 2_100);
        assert!(body.message.starts_with("no profile é") && body.message.ends_with("é here"));
        assert!(body.in_field("f".repeat(10_000)).field.unwrap().len() < 300);
    }
}
