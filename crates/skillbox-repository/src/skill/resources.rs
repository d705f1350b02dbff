//! Lists the resources of a skill: the files next to SKILL.md, by kind.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;
use skillbox_model::RelPath;

use super::excluded_names::is_excluded_name;
use super::read_error::SkillReadError;
use super::skill_dir::{SkillDir, Storage};
use crate::fs::{EntryKind, OpenError, list_dir};

/// The purpose of a resource, according to its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// In `scripts/`: a program to run.
    Script,
    /// In `references/`: a document to read when needed.
    Reference,
    /// In `assets/`: a file to use in the output of the skill.
    Asset,
    /// In the root directory of the skill.
    Other,
}

impl ResourceKind {
    /// The serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Reference => "reference",
            Self::Asset => "asset",
            Self::Other => "other",
        }
    }

    /// The directory of this kind; `None` for the root directory.
    fn directory(self) -> Option<&'static str> {
        match self {
            Self::Script => Some("scripts"),
            Self::Reference => Some("references"),
            Self::Asset => Some("assets"),
            Self::Other => None,
        }
    }

    const ALL: [Self; 4] = [Self::Script, Self::Reference, Self::Asset, Self::Other];
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One resource of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// The path below the skill.
    pub path: RelPath,
    /// The purpose of the resource.
    pub kind: ResourceKind,
}

/// The resources of a skill, as far as its directories can be listed.
#[derive(Debug, Default)]
pub struct ResourceListing {
    /// Ordered by kind, then by path.
    pub resources: Vec<Resource>,
    /// Why a directory is not listed, for each such directory.
    pub problems: Vec<SkillReadError>,
}

impl SkillDir {
    /// The files directly in the root directory, `scripts/`, `references/` and `assets/`, except SKILL.md. A directory
    /// that cannot be listed is a problem of the listing, and its files are missing.
    pub fn list_resources(&self) -> ResourceListing {
        let mut listing = ResourceListing::default();
        for kind in ResourceKind::ALL {
            match self.paths_of_kind(kind) {
                Ok(paths) => {
                    let paths = paths.into_iter().filter(|path| !self.is_skill_md(path));
                    listing.resources.extend(paths.map(|path| Resource { path, kind }));
                }
                Err(problem) => listing.problems.push(problem),
            }
        }
        listing
    }

    /// Like [`list_resources`](Self::list_resources), but fails if a directory cannot be listed.
    pub fn resources(&self) -> Result<Vec<Resource>, SkillReadError> {
        let ResourceListing { resources, problems } = self.list_resources();
        match problems.into_iter().next() {
            None => Ok(resources),
            Some(problem) => Err(problem),
        }
    }

    fn paths_of_kind(&self, kind: ResourceKind) -> Result<Vec<RelPath>, SkillReadError> {
        let directory = match &self.storage {
            Storage::Disk(directory) => directory,
            Storage::Embedded(skill) => {
                let paths = skill.files().filter_map(|(path, _)| RelPath::parse(path).ok());
                return Ok(paths.filter(|path| is_directly_in(path, kind.directory())).collect());
            }
        };
        let Some(name) = kind.directory() else {
            let root = directory.open_for_listing();
            let root = root.map_err(|error| self.io_error(Path::new(""), error))?;
            return self.files_in(root.as_fd(), None);
        };
        match directory.open_beneath(name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(subdirectory) => self.files_in(subdirectory.as_fd(), Some(name)),
            // A directory that is missing, a file or outside the skill has no resources.
            Err(OpenError::Outside) => Ok(Vec::new()),
            Err(OpenError::System(error)) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => Ok(Vec::new()),
                _ => Err(self.io_error(Path::new(name), error)),
            },
        }
    }

    fn files_in(&self, directory: BorrowedFd<'_>, name: Option<&str>) -> Result<Vec<RelPath>, SkillReadError> {
        let listing = list_dir(directory, |name, kind| {
            matches!(kind, EntryKind::File | EntryKind::Link) && !is_excluded_name(name)
        });
        if let Some(error) = listing.error {
            return Err(self.io_error(Path::new(name.unwrap_or_default()), error));
        }
        let mut paths = Vec::new();
        for entry in listing.entries {
            let path = match name {
                Some(name) => [name.as_bytes(), &entry.name].join(&b'/'),
                None => entry.name.to_vec(),
            };
            let Ok(path) = RelPath::parse(path) else { continue };
            if entry.kind == EntryKind::File || self.resolves_to_file(&path) {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

fn is_directly_in(path: &RelPath, directory: Option<&str>) -> bool {
    path.as_path().parent().map(Path::as_os_str) == Some(OsStr::from_bytes(directory.unwrap_or_default().as_bytes()))
}
