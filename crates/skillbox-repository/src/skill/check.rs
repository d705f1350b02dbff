//! Checks the body and the tree of a skill, which a scan does not read.

use skillbox_model::Diagnostic;

use super::read_error::SkillReadError;
use super::skill_dir::SkillDir;
use super::skill_tree::{TreeEntry, TreeEntryKind};
use crate::diagnostics::scan_diagnostics;
use crate::parse::check_skill_md_body;

/// Names in the root directory of a skill that refer to entries of the workspace while the skill runs.
const WORKSPACE_NAMES: [&str; 3] = ["out", "work", "inputs"];

impl SkillDir {
    /// Checks the whole skill: the length of the instructions, references that are nested too deeply, names that the
    /// workspace hides, links that point outside the skill, and special files.
    ///
    /// The diagnostics complement those of a scan, which reads only the frontmatter of a SKILL.md.
    pub fn check(&self) -> Result<Vec<Diagnostic>, SkillReadError> {
        let path = self.display_path.join(&self.skill_md);
        let mut diagnostics = check_skill_md_body(&path, &self.read_skill_md()?.whole);
        let tree = self.read_tree()?;
        diagnostics.extend(tree.entries.iter().flat_map(|entry| self.check_entry(entry)));
        diagnostics.extend(tree.exclusions);
        Ok(diagnostics)
    }

    fn check_entry(&self, entry: &TreeEntry) -> impl Iterator<Item = Diagnostic> {
        let display_path = || self.display_path.join(entry.path.as_path());
        let workspace_name = WORKSPACE_NAMES
            .into_iter()
            .find(|name| entry.path.as_bytes() == name.as_bytes());
        let hidden = workspace_name.map(|name| scan_diagnostics::hidden_by_workspace(&display_path(), name));
        let is_file = !matches!(entry.kind, TreeEntryKind::Dir);
        let mut components = entry.path.components();
        let is_deep = is_file && components.next() == Some(b"references") && components.count() > 1;
        let deep = is_deep.then(|| scan_diagnostics::deep_reference(&display_path()));
        hidden.into_iter().chain(deep)
    }
}
