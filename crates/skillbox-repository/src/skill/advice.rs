//! Advice about a whole skill. It requires the body and the tree, which a scan does not read.

use skillbox_model::Diagnostic;

use super::read_error::SkillReadError;
use super::skill_dir::SkillDir;
use super::skill_tree::{TreeEntry, TreeEntryKind};
use crate::diagnostics::scan;
use crate::parse::check_instructions_length;

/// Names below `skills/NAME` that refer to the entries of the workspace when a skill runs.
const WORKSPACE_NAMES: [&str; 3] = ["out", "work", "inputs"];

impl SkillDir {
    /// Advice about this skill, and what its tree excludes.
    ///
    /// These diagnostics complement those of the scan, which reads only the frontmatter of a SKILL.md: the length of the
    /// instructions, references that are nested too deeply, names that the workspace hides, links that point outside
    /// the skill, and special files.
    pub fn advice(&self) -> Result<Vec<Diagnostic>, SkillReadError> {
        let path = self.display_path.join(&self.skill_md);
        let mut advice = check_instructions_length(&path, &self.instructions()?.whole);
        let tree = self.tree()?;
        advice.extend(tree.entries.iter().flat_map(|entry| self.advice_on_entry(entry)));
        advice.extend(tree.exclusions);
        Ok(advice)
    }

    fn advice_on_entry(&self, entry: &TreeEntry) -> impl Iterator<Item = Diagnostic> {
        let display_path = || self.display_path.join(entry.path.as_path());
        let workspace_name = WORKSPACE_NAMES
            .into_iter()
            .find(|name| entry.path.as_bytes() == name.as_bytes());
        let hidden = workspace_name.map(|name| scan::hidden_by_workspace(&display_path(), name));
        let is_file = !matches!(entry.kind, TreeEntryKind::Dir);
        let mut components = entry.path.components();
        let is_deep = is_file && components.next() == Some(b"references") && components.count() > 1;
        let deep = is_deep.then(|| scan::deep_reference(&display_path()));
        hidden.into_iter().chain(deep)
    }
}
