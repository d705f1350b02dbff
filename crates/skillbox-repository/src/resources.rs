//! The resources of a skill: what its author laid beside the instructions, by kind.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Serialize;
use skillbox_model::RelPath;

use crate::listing::{NameKind, list};
use crate::skill_dir::{Backing, SkillDir, SkillReadError};
use crate::tree::is_left_out;

/// What a resource is for, told by the directory it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// In `scripts/`: to be run.
    Script,
    /// In `references/`: to be read when needed.
    Reference,
    /// In `assets/`: to be used in what the skill makes.
    Asset,
    /// At the skill's root.
    Other,
}

impl ResourceKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Reference => "reference",
            Self::Asset => "asset",
            Self::Other => "other",
        }
    }

    /// The customary directory, but for what lies at the root.
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

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// Its path below the skill.
    pub path: RelPath,
    /// What it is for.
    pub kind: ResourceKind,
}

impl SkillDir {
    /// The files at the first level of the customary directories and of the root, in the order of their kinds,
    /// then of their paths. The SKILL.md is none of them.
    pub fn resources(&self) -> Result<Vec<Resource>, SkillReadError> {
        let mut resources = Vec::new();
        for kind in ResourceKind::ALL {
            let paths = match &self.backing {
                Backing::Disk(directory) => match kind.directory() {
                    None => {
                        let root = directory
                            .for_listing()
                            .map_err(|error| self.failed(Path::new(""), error))?;
                        self.files_in(root.as_fd(), None)?
                    }
                    // A directory that is missing, or leads out of the skill, has nothing in it for us.
                    Some(name) => match directory.open_beneath(name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
                        Ok(below) => self.files_in(below.as_fd(), Some(name))?,
                        Err(_) => continue,
                    },
                },
                Backing::Embedded(skill) => {
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
        let listing = list(directory, |name, kind| {
            matches!(kind, NameKind::File | NameKind::Link) && !is_left_out(name)
        });
        if let Some(error) = listing.broke_off {
            return Err(self.failed(Path::new(name.unwrap_or_default()), error));
        }
        let mut paths = Vec::new();
        for entry in listing.names {
            let path = match name {
                Some(name) => [name.as_bytes(), &entry.bytes].join(&b'/'),
                None => entry.bytes.to_vec(),
            };
            let Ok(path) = RelPath::parse(path) else { continue };
            if entry.kind == NameKind::File || self.leads_to_file(&path) {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

fn is_directly_in(path: &RelPath, directory: Option<&str>) -> bool {
    path.as_path().parent().map(Path::as_os_str) == Some(OsStr::from_bytes(directory.unwrap_or_default().as_bytes()))
}
