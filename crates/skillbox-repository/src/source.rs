//! Where skills come from.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::embedded::EmbeddedSkills;

/// On whose behalf a skill is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Shipped with the program.
    BuiltIn,
    /// From the user's home.
    User,
    /// From the project at hand.
    Project,
}

impl Scope {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built_in",
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One place that skills come from. In a list of sources, a later one wins over an earlier one.
#[derive(Clone, Debug)]
pub enum Source {
    /// A directory of skills, or one skill's own directory; it is said when it is missing.
    Directory {
        /// The directory.
        path: PathBuf,
        /// On whose behalf.
        scope: Scope,
    },
    /// The same for a customary place that need not exist: nothing is said when it is missing, and its skills
    /// come in when it appears.
    OptionalDirectory {
        /// The directory.
        path: PathBuf,
        /// On whose behalf.
        scope: Scope,
    },
    /// Skills inside the program.
    Embedded(&'static EmbeddedSkills),
}

/// What an entry remembers of its source.
#[derive(Clone, Debug)]
pub(crate) struct SourceInfo {
    /// As shown to people: the path, or the label of embedded skills.
    pub(crate) label: Box<str>,
    /// On whose behalf.
    pub(crate) scope: Scope,
    /// The absolute directory; empty for embedded skills.
    pub(crate) root: PathBuf,
}

impl Source {
    /// The text that names this source to people.
    pub fn label(&self) -> String {
        match self {
            Self::Directory { path, .. } | Self::OptionalDirectory { path, .. } => path.display().to_string(),
            Self::Embedded(skills) => skills.label().to_owned(),
        }
    }

    /// On whose behalf its skills are there.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Directory { scope, .. } | Self::OptionalDirectory { scope, .. } => *scope,
            Self::Embedded(_) => Scope::BuiltIn,
        }
    }

    pub(crate) fn info(&self) -> Arc<SourceInfo> {
        let root = match self {
            Self::Directory { path, .. } | Self::OptionalDirectory { path, .. } => absolute(path),
            Self::Embedded(_) => PathBuf::new(),
        };
        Arc::new(SourceInfo {
            label: self.label().into(),
            scope: self.scope(),
            root,
        })
    }
}

/// Absolute, but with its links and names as they were given: that is the path that people know.
fn absolute(path: &Path) -> PathBuf {
    // This fails for an empty path and without a working directory; the scan then says what is wrong with it.
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.components().collect())
}

/// Limits of a scan.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// How many levels below a source a skill may lie.
    pub max_depth: u8,
    /// How many directories of one source are looked into.
    pub max_directories: usize,
    /// How many threads work at once.
    pub threads: NonZeroUsize,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            max_depth: 6,
            max_directories: 100_000,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}
