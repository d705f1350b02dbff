//! One skill in the catalog.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skillbox_model::SkillName;

use super::embedded::EmbeddedSkill;
use super::read_error::SkillReadError;
use super::skill_dir::SkillDir;
use super::source::{Scope, SourceInfo};
use crate::parse::SkillMeta;

/// A skill that a scan found: its metadata and its path. The body and the files are not kept in memory.
#[derive(Clone, Debug)]
pub struct SkillEntry {
    /// The metadata from the frontmatter.
    pub meta: SkillMeta,
    path: Box<Path>,
    source: Arc<SourceInfo>,
    embedded: Option<EmbeddedSkill>,
}

impl SkillEntry {
    pub(crate) fn on_disk(meta: SkillMeta, path: Box<Path>, source: Arc<SourceInfo>) -> Self {
        Self {
            meta,
            path,
            source,
            embedded: None,
        }
    }

    pub(crate) fn embedded(meta: SkillMeta, skill: EmbeddedSkill, source: Arc<SourceInfo>) -> Self {
        Self {
            meta,
            path: skill.display_path().into(),
            source,
            embedded: Some(skill),
        }
    }

    /// The name of the skill.
    pub fn name(&self) -> &SkillName {
        &self.meta.name
    }

    /// The path of SKILL.md, as displayed. For an embedded skill, it does not exist in any file system.
    pub fn skill_md_path(&self) -> &Path {
        &self.path
    }

    /// The directory of the skill, as displayed.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The directory relative to the source; empty if the source itself is a skill.
    pub fn dir_in_source(&self) -> &Path {
        match &self.embedded {
            Some(skill) => Path::new(skill.directory()),
            None => self.dir().strip_prefix(&self.source.root).unwrap_or(self.dir()),
        }
    }

    /// The file name of SKILL.md: `SKILL.md` or `skill.md`.
    pub fn skill_md_name(&self) -> &OsStr {
        match &self.embedded {
            Some(_) => OsStr::new("SKILL.md"),
            None => self.path.file_name().unwrap_or(OsStr::from_bytes(b"SKILL.md")),
        }
    }

    /// The scope of the source.
    pub fn scope(&self) -> Scope {
        self.source.scope
    }

    /// The display name of the source.
    pub fn source_label(&self) -> &str {
        &self.source.label
    }

    /// The position of the source in the list of sources. A later source takes precedence.
    pub fn source_position(&self) -> u32 {
        self.source.position
    }

    /// The directory for the files of an embedded skill below `root`; `None` for a skill on disk. It contains the digest
    /// of the embedded skills, so that two versions of the program do not share it.
    pub fn extracted_dir(&self, root: &Path) -> Option<PathBuf> {
        let skill = self.embedded?;
        Some(root.join(skill.source().digest()).join(skill.directory()))
    }

    /// Opens the skill. The handle cannot read anything outside the skill.
    pub fn open(&self) -> Result<SkillDir, SkillReadError> {
        match self.embedded {
            Some(skill) => Ok(SkillDir::embedded(skill)),
            None => SkillDir::open_with_skill_md(self.dir(), self.skill_md_name(), self.source.limits),
        }
    }
}
