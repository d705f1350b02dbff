//! The documents of a skill: what a model may ask for beside the instructions.

use rustix::fs::{FileType, OFlags, fstat};
use skillbox_model::RelPath;

use crate::skill_dir::{Backing, SkillDir, SkillReadError};
use crate::tree::{TreeEntry, TreeEntryKind, has_suffix};

impl SkillDir {
    /// Every `.md` and `.txt` file at any depth but the SKILL.md itself, sorted by path.
    pub fn docs(&self) -> Result<Vec<RelPath>, SkillReadError> {
        let entries = self.files()?;
        let docs = entries.into_iter().filter(|entry| self.is_doc(entry));
        Ok(docs.map(|entry| entry.path).collect())
    }

    fn is_doc(&self, entry: &TreeEntry) -> bool {
        let is_file = match &entry.kind {
            TreeEntryKind::File { .. } => true,
            TreeEntryKind::Link { .. } => self.leads_to_file(&entry.path),
            TreeEntryKind::Dir => false,
        };
        is_file && has_suffix(&entry.path, &["md", "txt"]) && !self.is_skill_md(&entry.path)
    }

    /// Whether a path is the file that makes this directory a skill.
    pub(crate) fn is_skill_md(&self, path: &RelPath) -> bool {
        path.as_path().as_os_str() == self.skill_md
    }

    /// Whether a path resolves to a regular file inside the skill.
    pub(crate) fn leads_to_file(&self, path: &RelPath) -> bool {
        match &self.backing {
            Backing::Embedded(skill) => skill.file(path.as_bytes()).is_some(),
            Backing::Disk(directory) => directory
                .open_beneath(path.as_bytes(), OFlags::PATH)
                .ok()
                .and_then(|file| fstat(file).ok())
                .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
        }
    }
}
