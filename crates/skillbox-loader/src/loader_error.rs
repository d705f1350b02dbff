//! The reasons for refusing a call. A refused call changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use skillbox_model::{ErrorCode, RelPathError};
use skillbox_repository::SkillReadError;

use crate::skill_view::SkillView;

/// Why a skill that exists did not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLoadedReason {
    /// The file, the line and what is wrong there.
    pub reason: String,
    /// The remedy.
    pub hint: Option<String>,
}

/// Why a call was refused. Each variant requires a different reaction of the caller.
/// [`to_error_body`](Self::to_error_body) renders the message of a dialect.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// The agent can see no skill of that name.
    #[error("unknown skill {name:?}")]
    UnknownSkill {
        /// The requested name.
        name: String,
        /// The most similar names, or all names in dialects that list all.
        suggestions: Vec<String>,
        /// Why the skill did not load, if a skill of that name exists.
        not_loaded: Option<Box<NotLoadedReason>>,
    },
    /// The skill was added to the catalog after the agent's turn started.
    #[error("unknown skill {0:?}: it was added after this turn started")]
    AddedDuringTurn(String),
    /// The skill is disabled in this session.
    #[error("the skill {0:?} is disabled in this session")]
    Disabled(String),
    /// Only the user may load the skill.
    #[error("only the user can load the skill {0:?}")]
    ManualOnly(String),
    /// Only the model may load the skill.
    #[error("only the model can load the skill {0:?}")]
    ModelOnly(String),
    /// The agent has loaded as many skills as it may.
    #[error("cannot load the skill {name:?}: the limit of {limit} loaded skills is reached")]
    LoadLimit {
        /// The requested name.
        name: String,
        /// How many skills may be loaded.
        limit: usize,
        /// The loaded skills.
        loaded: Vec<String>,
    },
    /// The skill was listed but no longer exists.
    #[error("the skill {name:?} is no longer at {}", .path.display())]
    SkillMissing {
        /// The skill.
        name: String,
        /// Where it was.
        path: PathBuf,
    },
    /// The skill exists but cannot be read.
    #[error("the skill {name:?} cannot be read")]
    Unreadable {
        /// The skill.
        name: String,
        /// Path of its SKILL.md.
        path: PathBuf,
        /// The cause.
        source: SkillReadError,
    },
    /// The skill has no such document or file.
    #[error("the skill {skill:?} has no {path:?}")]
    UnknownDoc {
        /// The skill.
        skill: String,
        /// The requested path.
        path: String,
        /// The most similar paths.
        suggestions: Vec<String>,
    },
    /// The path is not a path inside a skill.
    #[error("{path:?} is not a path inside a skill")]
    InvalidPath {
        /// The given path.
        path: String,
        /// The argument that contains it.
        field: &'static str,
        /// The cause.
        source: RelPathError,
    },
    /// The file is too large to be read.
    #[error("{path:?} of the skill {skill:?} has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The skill.
        skill: String,
        /// The file.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The largest size in bytes that can be read.
        limit: u64,
    },
    /// The host requires that a skill is loaded before it runs.
    #[error("the skill {0:?} is not loaded")]
    NotLoaded(String),
    /// The policy blocks the call.
    #[error("the loaded skills do not allow the tool {tool:?}")]
    ToolNotAllowed {
        /// The tool.
        tool: String,
        /// The loaded skills, whose declarations together are allowed.
        skills: Vec<Arc<SkillView>>,
        /// Why no pattern matches the call.
        reason: Option<String>,
    },
    /// The dialect has no such tool, or the host did not register it.
    #[error("unknown tool {tool:?}")]
    UnknownTool {
        /// The called name.
        tool: String,
        /// The names of the tools that exist.
        available: Vec<&'static str>,
    },
    /// The called name is that of a skill, not of a tool.
    #[error("{skill:?} is a skill, not a tool")]
    SkillCalledAsTool {
        /// The skill.
        skill: String,
        /// The tool that loads skills.
        load_tool: Option<&'static str>,
    },
    /// The called name is that of a tool that the host runs.
    #[error("{0:?} is a tool of the host: skillbox lists it, and the host runs it")]
    HostToolCalled(String),
    /// The host registers a tool with the name of one of skillbox's tools.
    #[error("the tool {name:?} cannot be registered: skillbox has a tool of that name")]
    HostToolNameTaken {
        /// The name.
        name: String,
        /// The argument that contains it.
        field: String,
    },
    /// The host registers too many tools.
    #[error("at most {max_tools} host tools of {max_bytes} bytes together can be registered")]
    TooManyHostTools {
        /// How many tools may be registered.
        max_tools: usize,
        /// The maximum size of their definitions.
        max_bytes: usize,
    },
    /// The arguments do not match what the tool accepts.
    #[error("invalid arguments for {tool}")]
    InvalidArguments {
        /// The tool.
        tool: &'static str,
        /// The invalid argument, such as `inputs[0].to`, if it can be named.
        field: Option<String>,
        /// The cause.
        source: serde_json::Error,
    },
    /// The call gives neither a name nor a path.
    #[error("skill_name or skill_path is required")]
    SkillNotNamed,
    /// The name and the path are those of different skills.
    #[error("skill_name {name:?} and skill_path {path:?} must refer to the same skill")]
    SkillMismatch {
        /// The given name.
        name: String,
        /// The given path.
        path: String,
    },
}

impl LoaderError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownSkill { .. } | Self::AddedDuringTurn(_) => ErrorCode::UnknownSkill,
            Self::Disabled(_) => ErrorCode::SkillDisabled,
            Self::ManualOnly(_) => ErrorCode::ManualOnly,
            Self::ModelOnly(_) => ErrorCode::ModelOnly,
            Self::LoadLimit { .. } => ErrorCode::LoadLimit,
            Self::SkillMissing { .. } | Self::Unreadable { .. } => ErrorCode::SkillUnreadable,
            Self::UnknownDoc { .. } => ErrorCode::UnknownDoc,
            Self::InvalidPath { source, .. } if source.is_escape() => ErrorCode::PathEscape,
            Self::TooLarge { .. } | Self::TooManyHostTools { .. } => ErrorCode::LimitExceeded,
            Self::NotLoaded(_) => ErrorCode::NotLoaded,
            Self::ToolNotAllowed { .. } => ErrorCode::ToolNotAllowed,
            Self::UnknownTool { .. } | Self::SkillCalledAsTool { .. } | Self::HostToolCalled(_) => {
                ErrorCode::UnknownTool
            }
            Self::InvalidPath { .. }
            | Self::InvalidArguments { .. }
            | Self::HostToolNameTaken { .. }
            | Self::SkillNotNamed
            | Self::SkillMismatch { .. } => ErrorCode::InvalidRequest,
        }
    }
}
