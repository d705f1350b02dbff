//! Lists the resources of a skill: the files next to SKILL.md, by kind.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Serialize;
use skillbox_model::RelPath;

use super::excluded_names::is_excluded_name;
use super::read_error::SkillReadError;
use super::skill_dir::{SkillDir, Storage};
use crate::fs::{EntryKind, list_dir};

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

impl SkillDir {
    /// The files directly in the root directory, `scripts/`, `references/` and `assets/`, except SKILL.md. They are
    /// ordered by kind, then by path.
    pub fn resources(&self) -> Result<Vec<Resource>, SkillReadError> {
        let mut resources = Vec::new();
        for kind in ResourceKind::ALL {
            let paths = match &self.storage {
                Storage::Disk(directory) => match kind.directory() {
                    None => {
                        let root = directory
                            .open_for_listing()
                            .map_err(|error| self.io_error(Path::new(""), error))?;
                        self.files_in(root.as_fd(), None)?
                    }
                    // A directory that is missing or outside the skill has no resources.
                    Some(name) => match directory.open_beneath(name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
                        Ok(subdirectory) => self.files_in(subdirectory.as_fd(), Some(name))?,
                        Err(_) => continue,
                    },
                },
                Storage::Embedded(skill) => {
                    let paths = skill.files().filter_map(|(path, _)| RelPath::parse(path).ok());
                    paths.filter(|path| is_directly_in(path, kind.directory())).collect()
                }
            };
            let paths = paths.into_iter().filter(|path| !self.is_skill_md(path));
            resources.extend(paths.map(|path| Resource { path, kind }));
        }
        Ok(resources)
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
