//! Reads the files of one skill and no file outside it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;
use skillbox_model::{RelPath, RelPathError};

use super::embedded::EmbeddedSkill;
use super::excluded_names::is_excluded_name;
use super::read_error::SkillReadError;
use super::read_limits::SkillLimits;
use super::skill_file::SkillFile;
use crate::fs::{ContainedDir, OpenError};
use crate::parse::{MAX_SKILL_MD_BYTES, SKILL_MD_NAMES, split_frontmatter};

/// An open skill: a directory descriptor, or files embedded in the program.
///
/// A descriptor keeps referring to the directory that was opened, even if another directory later has the same path.
/// Links that stay inside the skill are followed; paths that resolve to a file outside the skill are errors.
#[derive(Debug)]
pub struct SkillDir {
    pub(super) storage: Storage,
    /// The path of the directory in messages.
    pub(super) display_path: PathBuf,
    /// The file name: `SKILL.md` or `skill.md`.
    pub(super) skill_md: OsString,
    pub(super) limits: SkillLimits,
}

#[derive(Debug)]
pub(super) enum Storage {
    Disk(ContainedDir),
    Embedded(EmbeddedSkill),
}

/// The text of a SKILL.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillMdText {
    /// The whole file.
    pub whole: String,
    /// The text after the frontmatter.
    pub body: String,
}

impl SkillDir {
    /// Opens the directory of a skill by its path, following links in the path.
    pub fn open(dir: &Path) -> Result<Self, SkillReadError> {
        let mut skill = Self::open_with_skill_md(dir, OsStr::new(SKILL_MD_NAMES[0]), SkillLimits::default())?;
        if let Storage::Disk(directory) = &skill.storage {
            let exists = |name: &&str| directory.open_beneath(name.as_bytes(), OFlags::PATH).is_ok();
            if let Some(name) = SKILL_MD_NAMES.iter().find(|name| exists(name)) {
                skill.skill_md = name.into();
            }
        }
        Ok(skill)
    }

    /// Opens the directory of a skill whose SKILL.md has a known file name.
    pub(super) fn open_with_skill_md(
        dir: &Path,
        skill_md: &OsStr,
        limits: SkillLimits,
    ) -> Result<Self, SkillReadError> {
        let directory = match ContainedDir::open(dir) {
            // The files of a directory that cannot be listed can still be opened by name.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ContainedDir::open_for_lookup(dir),
            opened => opened,
        };
        let directory = directory.map_err(|source| SkillReadError::Io {
            path: dir.to_owned(),
            source,
        })?;
        Ok(Self {
            storage: Storage::Disk(directory),
            display_path: dir.to_owned(),
            skill_md: skill_md.to_owned(),
            limits,
        })
    }

    pub(super) fn embedded(skill: EmbeddedSkill) -> Self {
        let path = skill.display_path();
        Self {
            storage: Storage::Embedded(skill),
            display_path: path.parent().unwrap_or(&path).to_owned(),
            skill_md: SKILL_MD_NAMES[0].into(),
            limits: SkillLimits::default(),
        }
    }

    /// Reads SKILL.md.
    pub fn read_skill_md(&self) -> Result<SkillMdText, SkillReadError> {
        let path =
            RelPath::parse(self.skill_md.as_bytes()).map_err(|error| self.invalid_path(&self.skill_md, &error))?;
        let bytes = self.read_file(&path, MAX_SKILL_MD_BYTES)?;
        let whole = String::from_utf8(bytes).map_err(|error| SkillReadError::NotUtf8 {
            path: self.display_path.join(path.as_path()),
            source: error.utf8_error(),
        })?;
        let body = split_frontmatter(&whole).1.to_owned();
        Ok(SkillMdText { whole, body })
    }

    /// Reads one file; fails if it has more than `limit` bytes.
    pub fn read_file(&self, path: &RelPath, limit: u64) -> Result<Vec<u8>, SkillReadError> {
        let mut file = self.open_file(path)?;
        let too_large = |size| SkillReadError::TooLarge {
            path: self.display_path.join(path.as_path()),
            size,
            limit,
        };
        if file.size() > limit {
            return Err(too_large(file.size()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(file.size()).unwrap_or(0));
        // The limit also applies to a file that grows while it is read.
        let read = (&mut file).take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let read = read.map_err(|source| self.io_error(path.as_path(), source))? as u64;
        if read > limit {
            return Err(too_large(read));
        }
        Ok(bytes)
    }

    /// Opens one file for reading.
    pub fn open_file(&self, path: &RelPath) -> Result<SkillFile, SkillReadError> {
        if path.components().any(is_excluded_name) {
            return Err(self.missing(path.as_path()));
        }
        match &self.storage {
            Storage::Embedded(skill) => skill
                .file(path.as_bytes())
                .map(SkillFile::embedded)
                .ok_or_else(|| self.missing(path.as_path())),
            Storage::Disk(directory) => {
                let file = self.open_beneath(directory, path.as_bytes(), OFlags::RDONLY)?;
                self.require_regular_file(file, path.as_path())
            }
        }
    }

    /// Opens the skill's directory, or a directory or file below it, without following a link at the end of the path.
    /// `None` for an embedded skill, which cannot change.
    pub fn open_for_watching(&self, path: Option<&RelPath>) -> Result<Option<OwnedFd>, SkillReadError> {
        let Storage::Disk(directory) = &self.storage else {
            return Ok(None);
        };
        let opened = match path {
            None => directory
                .open_for_listing()
                .map_err(|error| self.io_error(Path::new(""), error))?,
            Some(path) => self.open_beneath(directory, path.as_bytes(), OFlags::RDONLY | OFlags::NOFOLLOW)?,
        };
        Ok(Some(opened))
    }

    fn open_beneath(&self, directory: &ContainedDir, path: &[u8], flags: OFlags) -> Result<OwnedFd, SkillReadError> {
        let shown_path = Path::new(OsStr::from_bytes(path));
        directory.open_beneath(path, flags).map_err(|error| match error {
            OpenError::Outside => SkillReadError::OutsideSkill {
                skill: self.display_path.clone(),
                path: shown_path.to_owned(),
            },
            OpenError::System(source) => match Errno::from_io_error(&source) {
                Some(Errno::NOENT | Errno::NOTDIR) => self.missing(shown_path),
                Some(Errno::NXIO | Errno::NODEV) => SkillReadError::NotAFile(self.display_path.join(shown_path)),
                _ => self.io_error(shown_path, source),
            },
        })
    }

    fn require_regular_file(&self, file: OwnedFd, path: &Path) -> Result<SkillFile, SkillReadError> {
        let stat = fstat(&file).map_err(|error| self.io_error(path, error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(SkillFile::on_disk(file, &stat)),
            _ => Err(SkillReadError::NotAFile(self.display_path.join(path))),
        }
    }

    /// Whether a path is the SKILL.md of this skill.
    pub(super) fn is_skill_md(&self, path: &RelPath) -> bool {
        path.as_path().as_os_str() == self.skill_md
    }

    /// Whether a path resolves to a regular file inside the skill.
    pub(super) fn resolves_to_file(&self, path: &RelPath) -> bool {
        match &self.storage {
            Storage::Embedded(skill) => skill.file(path.as_bytes()).is_some(),
            Storage::Disk(directory) => directory
                .open_beneath(path.as_bytes(), OFlags::PATH)
                .ok()
                .and_then(|file| fstat(file).ok())
                .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
        }
    }

    fn missing(&self, path: &Path) -> SkillReadError {
        SkillReadError::Missing {
            skill: self.display_path.clone(),
            path: path.to_owned(),
        }
    }

    pub(super) fn io_error(&self, path: &Path, source: io::Error) -> SkillReadError {
        SkillReadError::Io {
            path: self.display_path.join(path),
            source,
        }
    }

    fn invalid_path(&self, path: &OsStr, error: &RelPathError) -> SkillReadError {
        self.io_error(
            Path::new(path),
            io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
        )
    }
}
