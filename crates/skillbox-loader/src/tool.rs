//! The actions that tools perform.

use serde::{Deserialize, Serialize};

/// A tool, independent of its name in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Lists skills.
    List,
    /// Loads a skill's instructions.
    Load,
    /// Unloads a skill.
    Unload,
    /// Lists a skill's documents.
    ListDocs,
    /// Selects which documents are shown.
    SelectDocs,
    /// Reads one file of a skill.
    Read,
    /// Runs a command in a sandbox.
    Run,
    /// Searches skills.
    Search,
    /// Disables a skill for this session.
    Disable,
    /// Enables a disabled skill again.
    Enable,
}

impl Tool {
    /// Every tool, in documentation order.
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

    /// Whether a call changes nothing.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::List | Self::ListDocs | Self::Read | Self::Search)
    }
}
