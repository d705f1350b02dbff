//! Why a call was refused. A refused call changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use skillbox_model::{ErrorCode, RelPathError};
use skillbox_repository::SkillReadError;

use crate::skill_view::SkillView;

/// A refusal, by what the caller can do about it. [`body`](Self::body) gives the words of a dialect.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// No skill of that name is there for this agent.
    #[error("unknown skill {name:?}")]
    UnknownSkill {
        /// What was asked for.
        name: String,
        /// Names to choose from: the nearest, or all where the dialect lists all.
        known: Vec<String>,
    },
    /// The session does without it.
    #[error("the skill {0:?} is disabled in this session")]
    Disabled(String),
    /// Only a person may load it.
    #[error("the skill {0:?} is loaded by the user only")]
    ManualOnly(String),
    /// As many are loaded as may be.
    #[error("{limit} skills are loaded already, so {name:?} is not")]
    LoadLimit {
        /// What was asked for.
        name: String,
        /// How many may be loaded.
        limit: usize,
        /// What is loaded.
        loaded: Vec<String>,
    },
    /// It was listed, and is not there any more.
    #[error("the skill {name:?} is no longer at {}", .path.display())]
    Vanished {
        /// The skill.
        name: String,
        /// Where it was.
        path: PathBuf,
    },
    /// It is there and cannot be read.
    #[error("the skill {name:?} cannot be read")]
    Unreadable {
        /// The skill.
        name: String,
        /// Its SKILL.md.
        path: PathBuf,
        /// Why not.
        source: SkillReadError,
    },
    /// The skill has no such document or file.
    #[error("the skill {skill:?} has no {path:?}")]
    UnknownDoc {
        /// The skill.
        skill: String,
        /// What was asked for.
        path: String,
        /// The nearest there are.
        nearest: Vec<String>,
    },
    /// A path that is none inside a skill.
    #[error("{path:?} is not a path inside a skill")]
    BadPath {
        /// What was given.
        path: String,
        /// The argument it came in.
        field: &'static str,
        /// Why not.
        source: RelPathError,
    },
    /// A file that can only be read in pieces smaller than its kind allows.
    #[error("{path:?} of the skill {skill:?} has {size} bytes, more than the {limit} that can be read")]
    TooLarge {
        /// The skill.
        skill: String,
        /// The file.
        path: String,
        /// What it has.
        size: u64,
        /// What can be read.
        limit: u64,
    },
    /// The host wants a skill loaded before it runs.
    #[error("the skill {0:?} is not loaded")]
    NotLoaded(String),
    /// The policy blocks the call.
    #[error("the tool {tool:?} is not allowed by the loaded skills")]
    ToolNotAllowed {
        /// The tool.
        tool: String,
        /// The loaded skills, whose declarations together are what is allowed.
        skills: Vec<Arc<SkillView>>,
        /// Why a pattern did not cover the call.
        because: Option<String>,
    },
    /// The dialect has no such tool, or the host did not register it.
    #[error("unknown tool {tool:?}")]
    UnknownTool {
        /// What was called.
        tool: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A skill was called as if it were a tool.
    #[error("{skill:?} is a skill, not a tool")]
    SkillIsNoTool {
        /// The skill.
        skill: String,
        /// The tool that loads it.
        load: Option<&'static str>,
    },
    /// The arguments are not what the tool takes.
    #[error("wrong arguments for {tool}")]
    WrongArguments {
        /// The tool.
        tool: &'static str,
        /// The argument, such as `inputs[0].to`, where it is one of them.
        field: Option<String>,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Neither a name nor a path.
    #[error("skill_name or skill_path is required")]
    NothingNamed,
    /// A name and a path of different skills.
    #[error("skill_name {name:?} and skill_path {path:?} must refer to the same skill")]
    NamesDiffer {
        /// The name.
        name: String,
        /// The path.
        path: String,
    },
}

impl LoaderError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownSkill { .. } => ErrorCode::UnknownSkill,
            Self::Disabled(_) => ErrorCode::SkillDisabled,
            Self::ManualOnly(_) => ErrorCode::ManualOnly,
            Self::LoadLimit { .. } => ErrorCode::LoadLimit,
            Self::Vanished { .. } | Self::Unreadable { .. } => ErrorCode::SkillUnreadable,
            Self::UnknownDoc { .. } => ErrorCode::UnknownDoc,
            Self::BadPath { source, .. } if source.is_escape() => ErrorCode::PathEscape,
            Self::TooLarge { .. } => ErrorCode::LimitExceeded,
            Self::NotLoaded(_) => ErrorCode::NotLoaded,
            Self::ToolNotAllowed { .. } => ErrorCode::ToolNotAllowed,
            Self::UnknownTool { .. } | Self::SkillIsNoTool { .. } => ErrorCode::UnknownTool,
            Self::BadPath { .. } | Self::WrongArguments { .. } | Self::NothingNamed | Self::NamesDiffer { .. } => {
                ErrorCode::InvalidRequest
            }
        }
    }
}
