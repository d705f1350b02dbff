//! The verbs that tools stand for.

use serde::{Deserialize, Serialize};

/// What a tool does, whatever a dialect calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Lists skills.
    List,
    /// Loads a skill's instructions.
    Load,
    /// Drops a loaded skill.
    Unload,
    /// Lists a skill's documents.
    ListDocs,
    /// Chooses which documents are shown.
    SelectDocs,
    /// Reads one file of a skill.
    Read,
    /// Runs a command in a sandbox.
    Run,
    /// Finds skills.
    Search,
    /// Does without a skill for this session.
    Disable,
    /// Takes it back.
    Enable,
}

impl Tool {
    /// Every tool, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::List,
        Self::Load,
        Self::Unload,
        Self::ListDocs,
        Self::SelectDocs,
        Self::Read,
        Self::Run,
        Self::Search,
        Self::Disable,
        Self::Enable,
    ];

    /// Whether a call leaves everything as it was.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::List | Self::ListDocs | Self::Read | Self::Search)
    }
}
