//! Where skills come from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::embedded::EmbeddedSkills;
use super::read_limits::SkillLimits;

/// Who provides a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The program.
    BuiltIn,
    /// The user, in the home directory.
    User,
    /// The current project.
    Project,
}

impl Scope {
    /// The serialized name.
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

/// A location of skills. In a list of sources, later ones take precedence over earlier ones.
#[derive(Clone, Debug)]
pub enum Source {
    /// A directory of skills, or the directory of one skill. If it is missing, a diagnostic reports this.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Who provides the skills.
        scope: Scope,
    },
    /// A directory that may be missing without a diagnostic. If it is created later, a refresh finds its skills.
    OptionalDirectory {
        /// The directory.
        path: PathBuf,
        /// Who provides the skills.
        scope: Scope,
    },
    /// Skills that are embedded in the program.
    Embedded(&'static EmbeddedSkills),
}

/// The data about a source that its entries share.
#[derive(Clone, Debug)]
pub(crate) struct SourceInfo {
    /// The display name: the path, or the label of embedded skills.
    pub(crate) label: Box<str>,
    /// Who provides the skills.
    pub(crate) scope: Scope,
    /// The absolute directory; empty for embedded skills.
    pub(crate) root: PathBuf,
    /// The position in the list of sources.
    pub(crate) position: u32,
    /// How much of each skill is read.
    pub(crate) limits: SkillLimits,
}

impl Source {
    /// The display name of this source.
    pub fn label(&self) -> String {
        match self {
            Self::Directory { path, .. } | Self::OptionalDirectory { path, .. } => path.display().to_string(),
            Self::Embedded(skills) => skills.label().to_owned(),
        }
    }

    /// Who provides the skills.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Directory { scope, .. } | Self::OptionalDirectory { scope, .. } => *scope,
            Self::Embedded(_) => Scope::BuiltIn,
        }
    }

    pub(crate) fn info(&self, position: u32, limits: SkillLimits) -> Arc<SourceInfo> {
        let root = match self {
            Self::Directory { path, .. } | Self::OptionalDirectory { path, .. } => absolute(path),
            Self::Embedded(_) => PathBuf::new(),
        };
        Arc::new(SourceInfo {
            label: self.label().into(),
            scope: self.scope(),
            root,
            position,
            limits,
        })
    }
}

/// Makes a path absolute without resolving links, so that the user recognizes it.
fn absolute(path: &Path) -> PathBuf {
    // This fails for an empty path, or if there is no working directory. The scan then reports the error.
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.components().collect())
}
