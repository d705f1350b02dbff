//! Advice about a whole skill, given when someone asks about that skill: it takes reading the body and the tree.

use skillbox_model::Diagnostic;

use crate::parse_code::ParseCode;
use crate::scan_note;
use crate::skill_dir::{SkillDir, SkillReadError};
use crate::skill_md::parse_lenient;
use crate::tree::{SkillTree, TreeEntryKind};

/// Names below `skills/NAME` that lead to the workspace's own when a skill runs.
const WORKSPACE_NAMES: [&str; 3] = ["out", "work", "inputs"];

impl SkillDir {
    /// What could be better about this skill, and what of its tree is left out when it runs.
    ///
    /// The scan reads only the head of a SKILL.md, so what its findings cannot cover is here: the length of the
    /// instructions, references that lie too deep, names that the workspace hides, links that lead out, special files.
    pub fn advice(&self) -> Result<Vec<Diagnostic>, SkillReadError> {
        let path = self.shown.join(&self.skill_md);
        let dir_name = self
            .shown
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = self.instructions()?.whole;
        let mut advice = parse_lenient(&path, &dir_name, text.as_bytes()).diagnostics;
        advice.retain(|diagnostic| diagnostic.code == ParseCode::LongBody.as_str());
        let tree = self.tree()?;
        advice.extend(self.advice_on_names(&tree));
        advice.extend(tree.left_out);
        Ok(advice)
    }

    fn advice_on_names(&self, tree: &SkillTree) -> Vec<Diagnostic> {
        let mut advice = Vec::new();
        for entry in &tree.entries {
            let shown = || self.shown.join(entry.path.as_path());
            let hides = |name: &&str| entry.path.as_bytes() == name.as_bytes();
            if let Some(name) = WORKSPACE_NAMES.into_iter().find(hides) {
                advice.push(scan_note::hidden_by_workspace(&shown(), name));
            }
            let is_file = !matches!(entry.kind, TreeEntryKind::Dir);
            let mut components = entry.path.components();
            if is_file && components.next() == Some(b"references") && components.count() > 1 {
                advice.push(scan_note::deep_reference(&shown()));
            }
        }
        advice
    }
}
