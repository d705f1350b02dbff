//! A skill by name or by path.

use crate::engine::Engine;
use crate::loader_error::LoaderError;
use crate::prompt::shown_directory;
use crate::skill_view::SkillView;
use crate::tools::SkillPointer;

impl Engine<'_> {
    /// The name that a pointer means. Given both, name and path must mean the same skill.
    pub fn pointed_name(&self, pointer: &SkillPointer) -> Result<String, LoaderError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        match (given(&pointer.skill_name), given(&pointer.skill_path)) {
            (None, None) => Err(LoaderError::NothingNamed),
            (Some(name), None) => Ok(name),
            (None, Some(path)) => self.name_at(&path),
            (Some(name), Some(path)) => {
                if self.name_at(&path)? == name {
                    Ok(name)
                } else {
                    Err(LoaderError::NamesDiffer { name, path })
                }
            }
        }
    }

    /// Disabled skills are found too: to disable one again is no error.
    fn name_at(&self, path: &str) -> Result<String, LoaderError> {
        let wanted = path.trim_end_matches('/');
        let is_it = |skill: &SkillView| {
            let directory = shown_directory(self.settings, skill);
            let below = |directory: &str| match wanted.strip_prefix(directory) {
                Some("") => !directory.is_empty(),
                Some(rest) => rest
                    .strip_prefix('/')
                    .is_some_and(|file| skill.path.ends_with(file) && is_skill_md(file)),
                None => false,
            };
            below(skill.directory()) || below(&directory)
        };
        let all = self.state.snapshot().map_or(&[][..], |snapshot| snapshot.skills());
        let mut known = all
            .iter()
            .filter(|skill| self.state.known_skill(self.agent, skill.name.as_str()).is_some());
        let found = known.find(|skill| is_it(skill));
        found
            .map(|skill| skill.name.to_string())
            .ok_or_else(|| self.unknown_skill(path))
    }
}

fn is_skill_md(file: &str) -> bool {
    file.eq_ignore_ascii_case("SKILL.md")
}
