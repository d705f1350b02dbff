//! A skill's own files, opened so that nothing outside of it can be reached.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;
use skillbox_model::{RelPath, RelPathError};

use crate::contained::{ContainedDir, OpenError};
use crate::embedded::EmbeddedSkill;
use crate::file_bytes::FileBytes;
use crate::frontmatter::split_body;
use crate::nested::SKILL_FILES;
use crate::skill_md::MAX_SKILL_MD_BYTES;
use crate::tree::is_left_out;

/// A handle on one skill: a directory descriptor, or files inside the program.
///
/// It stays on the directory that was opened, even when the path later leads to another one. Links that stay
/// inside the skill work; a file that resolves outside of it does not exist for this handle.
#[derive(Debug)]
pub struct SkillDir {
    pub(crate) backing: Backing,
    /// As shown in messages.
    pub(crate) shown: PathBuf,
    /// The spelling of its SKILL.md.
    pub(crate) skill_md: OsString,
}

#[derive(Debug)]
pub(crate) enum Backing {
    Disk(ContainedDir),
    Embedded(EmbeddedSkill),
}

/// The text of a SKILL.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillText {
    /// The whole file.
    pub whole: String,
    /// What follows the frontmatter.
    pub body: String,
}

/// Why a skill, or a file of it, was not read.
#[derive(Debug, thiserror::Error)]
pub enum SkillReadError {
    /// The skill has no such file.
    #[error("{path} does not exist in the skill {skill}", path = .path.display(), skill = .skill.display())]
    Missing {
        /// The skill's directory.
        skill: PathBuf,
        /// The path below it.
        path: PathBuf,
    },
    /// A link leads out of the skill, or the path is not one that could stay inside.
    #[error("{path} leads out of the skill {skill}", path = .path.display(), skill = .skill.display())]
    Leaves {
        /// The skill's directory.
        skill: PathBuf,
        /// The path below it.
        path: PathBuf,
    },
    /// It is there, but is a directory, a FIFO, a socket or a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// It has more bytes than may be read.
    #[error("{path} has {size} bytes, more than the {limit} allowed", path = .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it has.
        size: u64,
        /// What was allowed.
        limit: u64,
    },
    /// It was to be text.
    #[error("{} is not UTF-8 text (byte {})", .path.display(), .source.valid_up_to())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Where it stops to be.
        source: std::str::Utf8Error,
    },
    /// The tree is deeper or wider than is ever followed.
    #[error("the skill {} has more than {limit} {what}", .skill.display())]
    TreeTooLarge {
        /// The skill's directory.
        skill: PathBuf,
        /// The limit.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
    /// The system refused.
    #[error("{} cannot be read", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl SkillDir {
    /// Opens the directory of a skill by its path; links on the way to it are followed.
    pub fn open(dir: &Path) -> Result<Self, SkillReadError> {
        let mut skill = Self::open_named(dir, OsStr::new(SKILL_FILES[0]))?;
        if let Backing::Disk(directory) = &skill.backing {
            let has = |name: &&str| directory.open_beneath(name.as_bytes(), OFlags::PATH).is_ok();
            if let Some(name) = SKILL_FILES.iter().find(|name| has(name)) {
                skill.skill_md = name.into();
            }
        }
        Ok(skill)
    }

    pub(crate) fn open_named(dir: &Path, skill_md: &OsStr) -> Result<Self, SkillReadError> {
        let directory = ContainedDir::open(dir).map_err(|source| SkillReadError::Io {
            path: dir.to_owned(),
            source,
        })?;
        Ok(Self {
            backing: Backing::Disk(directory),
            shown: dir.to_owned(),
            skill_md: skill_md.to_owned(),
        })
    }

    pub(crate) fn embedded(skill: EmbeddedSkill) -> Self {
        let path = skill.shown_path();
        Self {
            backing: Backing::Embedded(skill),
            shown: path.parent().unwrap_or(&path).to_owned(),
            skill_md: SKILL_FILES[0].into(),
        }
    }

    /// The text of its SKILL.md.
    pub fn instructions(&self) -> Result<SkillText, SkillReadError> {
        let path = RelPath::parse(self.skill_md.as_bytes()).map_err(|error| self.bad_path(&self.skill_md, &error))?;
        let bytes = self.read(&path, MAX_SKILL_MD_BYTES)?;
        let whole = String::from_utf8(bytes).map_err(|error| SkillReadError::NotUtf8 {
            path: self.shown.join(path.as_path()),
            source: error.utf8_error(),
        })?;
        let body = split_body(&whole).1.to_owned();
        Ok(SkillText { whole, body })
    }

    /// The bytes of one file, refused when it has more than `limit`.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Vec<u8>, SkillReadError> {
        let mut file = self.open_file(path)?;
        let too_large = |size| SkillReadError::TooLarge {
            path: self.shown.join(path.as_path()),
            size,
            limit,
        };
        if file.size() > limit {
            return Err(too_large(file.size()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(file.size()).unwrap_or(0));
        // A file that grows while it is read is held to the limit all the same.
        let read = (&mut file).take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let read = read.map_err(|source| self.failed(path.as_path(), source))? as u64;
        if read > limit {
            return Err(too_large(read));
        }
        Ok(bytes)
    }

    /// Opens one file for reading in pieces.
    pub fn open_file(&self, path: &RelPath) -> Result<FileBytes, SkillReadError> {
        if path.components().any(is_left_out) {
            return Err(self.missing(path.as_path()));
        }
        match &self.backing {
            Backing::Embedded(skill) => skill
                .file(path.as_bytes())
                .map(FileBytes::embedded)
                .ok_or_else(|| self.missing(path.as_path())),
            Backing::Disk(directory) => {
                let file = self.opened(directory, path.as_bytes(), OFlags::RDONLY)?;
                self.regular(file, path.as_path())
            }
        }
    }

    pub(crate) fn opened(
        &self,
        directory: &ContainedDir,
        path: &[u8],
        flags: OFlags,
    ) -> Result<OwnedFd, SkillReadError> {
        let shown = Path::new(OsStr::from_bytes(path));
        directory.open_beneath(path, flags).map_err(|error| match error {
            OpenError::Leaves => SkillReadError::Leaves {
                skill: self.shown.clone(),
                path: shown.to_owned(),
            },
            OpenError::System(source) => match Errno::from_io_error(&source) {
                Some(Errno::NOENT | Errno::NOTDIR) => self.missing(shown),
                Some(Errno::NXIO | Errno::NODEV) => SkillReadError::NotAFile(self.shown.join(shown)),
                _ => self.failed(shown, source),
            },
        })
    }

    pub(crate) fn regular(&self, file: OwnedFd, path: &Path) -> Result<FileBytes, SkillReadError> {
        let stat = fstat(&file).map_err(|error| self.failed(path, error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(FileBytes::disk(file, &stat)),
            _ => Err(SkillReadError::NotAFile(self.shown.join(path))),
        }
    }

    fn missing(&self, path: &Path) -> SkillReadError {
        SkillReadError::Missing {
            skill: self.shown.clone(),
            path: path.to_owned(),
        }
    }

    pub(crate) fn failed(&self, path: &Path, source: io::Error) -> SkillReadError {
        SkillReadError::Io {
            path: self.shown.join(path),
            source,
        }
    }

    fn bad_path(&self, path: &OsStr, error: &RelPathError) -> SkillReadError {
        self.failed(
            Path::new(path),
            io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
        )
    }
}
