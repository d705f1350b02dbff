//! Lists the skills of a session.

use std::fmt::Write as _;

use super::rank::ranked;
use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::one_line::one_line;
use crate::tools::{ListInput, ListResult, ListedSkill};

impl Engine<'_> {
    /// Every skill that the agent may know of, the disabled ones too, so that they can be taken back.
    pub fn list(&self, input: &ListInput) -> Result<Answer<ListResult>, LoaderError> {
        let all = self.state.snapshot().map_or(&[][..], |snapshot| snapshot.skills());
        let known = all
            .iter()
            .filter(|skill| self.state.known_skill(self.agent, skill.name.as_str()).is_some());
        let hits = ranked(known, input.query.as_deref().unwrap_or_default());
        let loaded = self.loaded_names();
        let skills: Vec<ListedSkill> = hits
            .into_iter()
            .map(|(_, skill)| ListedSkill {
                name: skill.name.clone(),
                description: skill.description.to_string(),
                source: skill.source.to_string(),
                loaded: loaded.iter().any(|name| name == skill.name.as_str()),
                disabled: self.state.disabled().contains(&skill.name),
                manual_only: skill.is_manual_only(),
                user_invocable: !skill
                    .steering
                    .as_ref()
                    .is_some_and(|steering| steering.hidden_from_users),
                argument_hint: skill.argument_hint().map(str::to_owned),
            })
            .collect();
        let text = list_text(&skills);
        Ok(Answer {
            result: ListResult { skills },
            text,
            delta: Default::default(),
        })
    }
}

fn list_text(skills: &[ListedSkill]) -> String {
    if skills.is_empty() {
        return "no skill matches".to_owned();
    }
    let mut text = String::new();
    for skill in skills {
        let _ = write!(text, "- {}", one_line(skill.name.as_str()));
        for (is_so, mark) in [
            (skill.loaded, " [Loaded]"),
            (skill.disabled, " [Disabled]"),
            (skill.manual_only, " [Manual only]"),
        ] {
            text.push_str(if is_so { mark } else { "" });
        }
        let _ = writeln!(text, ": {}", one_line(&skill.description));
    }
    text
}
