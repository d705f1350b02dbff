//! One skill of the catalogue.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use skillbox_model::SkillName;

use crate::embedded::EmbeddedSkill;
use crate::skill_dir::{SkillDir, SkillReadError};
use crate::skill_meta::SkillMeta;
use crate::source::{Scope, SourceInfo};

/// A skill that was found: what its frontmatter says, and where it lies. Its body and files stay on disk.
#[derive(Clone, Debug)]
pub struct SkillEntry {
    /// What the frontmatter says.
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

    pub(crate) fn in_program(meta: SkillMeta, skill: EmbeddedSkill, source: Arc<SourceInfo>) -> Self {
        Self {
            meta,
            path: skill.shown_path().into(),
            source,
            embedded: Some(skill),
        }
    }

    /// The name by which it is called.
    pub fn name(&self) -> &SkillName {
        &self.meta.name
    }

    /// Its SKILL.md, as shown to people and models. For an embedded skill no file system has this path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its directory, as shown.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Its directory relative to its source; empty for a source that is itself a skill.
    pub fn dir_in_source(&self) -> &Path {
        match &self.embedded {
            Some(skill) => Path::new(skill.directory()),
            None => self.dir().strip_prefix(&self.source.root).unwrap_or(self.dir()),
        }
    }

    /// `SKILL.md` or `skill.md`.
    pub fn file_name(&self) -> &OsStr {
        match &self.embedded {
            Some(_) => OsStr::new("SKILL.md"),
            None => self.path.file_name().unwrap_or(OsStr::from_bytes(b"SKILL.md")),
        }
    }

    /// On whose behalf it is there.
    pub fn scope(&self) -> Scope {
        self.source.scope
    }

    /// The text that names its source to people.
    pub fn source_label(&self) -> &str {
        &self.source.label
    }

    /// Opens its directory. Everything read through the handle stays inside the skill.
    pub fn open(&self) -> Result<SkillDir, SkillReadError> {
        match self.embedded {
            Some(skill) => Ok(SkillDir::embedded(skill)),
            None => SkillDir::open_named(self.dir(), self.file_name()),
        }
    }
}
