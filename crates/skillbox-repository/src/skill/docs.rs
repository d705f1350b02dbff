//! Lists the documents of a skill.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use skillbox_model::RelPath;

use super::read_error::SkillReadError;
use super::skill_dir::SkillDir;
use super::skill_tree::{TreeEntry, TreeEntryKind};

const DOC_EXTENSIONS: [&str; 2] = ["md", "txt"];

impl SkillDir {
    /// Every `.md` and `.txt` file at any depth except SKILL.md, sorted by path.
    pub fn docs(&self) -> Result<Vec<RelPath>, SkillReadError> {
        let entries = self.tree_entries()?;
        let docs = entries.into_iter().filter(|entry| self.is_doc(entry));
        Ok(docs.map(|entry| entry.path).collect())
    }

    fn is_doc(&self, entry: &TreeEntry) -> bool {
        let is_file = match &entry.kind {
            TreeEntryKind::File { .. } => true,
            TreeEntryKind::Link { .. } => self.resolves_to_file(&entry.path),
            TreeEntryKind::Dir => false,
        };
        is_file && has_doc_extension(&entry.path) && !self.is_skill_md(&entry.path)
    }
}

fn has_doc_extension(path: &RelPath) -> bool {
    Path::new(OsStr::from_bytes(path.file_name()))
        .extension()
        .is_some_and(|extension| DOC_EXTENSIONS.iter().any(|doc| extension.eq_ignore_ascii_case(doc)))
}
