//! Resolves a skill that a caller gives by name or by path.

use std::path::{Path, PathBuf};

use crate::call_context::CallContext;
use crate::loader_error::LoaderError;
use crate::prompt::shown_directory;
use crate::skill_view::SkillView;
use crate::tool_interface::SaaSkillInput;

impl CallContext<'_> {
    /// Resolves the name of a skill. If both a name and a path are given, they must refer to the same skill.
    pub fn resolve_skill_name(&self, input: &SaaSkillInput) -> Result<String, LoaderError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        match (given(&input.skill_name), given(&input.skill_path)) {
            (None, None) => Err(LoaderError::SkillNotNamed),
            (Some(name), None) => Ok(name),
            (None, Some(path)) => self.skill_name_at(&path),
            (Some(name), Some(path)) => {
                if self.skill_name_at(&path)? == name {
                    Ok(name)
                } else {
                    Err(LoaderError::SkillMismatch { name, path })
                }
            }
        }
    }

    /// Finds the name of the skill at a path. Disabled skills are found too, because disabling one again is not an error.
    fn skill_name_at(&self, path: &str) -> Result<String, LoaderError> {
        let normalized: PathBuf = Path::new(path).components().collect();
        let wanted = normalized.to_string_lossy();
        let is_at_path = |skill: &SkillView| {
            let directory = shown_directory(self.settings, skill);
            let is_below = |directory: &str| match wanted.strip_prefix(directory) {
                Some("") => !directory.is_empty(),
                Some(rest) => rest
                    .strip_prefix('/')
                    .is_some_and(|file| skill.path.ends_with(file) && is_skill_md(file)),
                None => false,
            };
            is_below(skill.directory()) || is_below(&directory)
        };
        let all = self.state.snapshot().map_or(&[][..], |snapshot| snapshot.skills());
        let mut included = all
            .iter()
            .filter(|skill| self.state.skill_in_filter(self.agent, skill.name.as_str()).is_some());
        let found = included.find(|skill| is_at_path(skill));
        found
            .map(|skill| skill.name.to_string())
            .ok_or_else(|| self.unknown_skill(path))
    }
}

fn is_skill_md(file: &str) -> bool {
    file.eq_ignore_ascii_case("SKILL.md")
}
