//! Lists skills.

use std::fmt::Write as _;

use super::rank::rank_skills;
use crate::call_context::{CallContext, OperationOutcome};
use crate::loader_error::LoaderError;
use crate::sanitize::sanitize_markdown_line;
use crate::tool_interface::{ListInput, ListResult, ListedSkill};

impl CallContext<'_> {
    /// Lists every skill that the agent's filter includes. Disabled skills are listed too, so that they can be enabled.
    pub fn list(&self, input: &ListInput) -> Result<OperationOutcome<ListResult>, LoaderError> {
        let all = self.state.snapshot().map_or(&[][..], |snapshot| snapshot.skills());
        let included = all
            .iter()
            .filter(|skill| self.state.skill_in_filter(self.agent, skill.name.as_str()).is_some());
        let hits = rank_skills(included, input.query.as_deref().unwrap_or_default());
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
                    .invocation
                    .as_ref()
                    .is_some_and(|invocation| invocation.hidden_from_users),
                argument_hint: skill.argument_hint().map(str::to_owned),
            })
            .collect();
        let text = render_list(&skills);
        Ok(OperationOutcome {
            result: ListResult { skills },
            text,
            delta: Default::default(),
        })
    }
}

fn render_list(skills: &[ListedSkill]) -> String {
    if skills.is_empty() {
        return "no skill matches".to_owned();
    }
    let mut text = String::new();
    for skill in skills {
        let _ = write!(text, "- {}", sanitize_markdown_line(skill.name.as_str()));
        for (is_set, mark) in [
            (skill.loaded, " [Loaded]"),
            (skill.disabled, " [Disabled]"),
            (skill.manual_only, " [Manual only]"),
        ] {
            text.push_str(if is_set { mark } else { "" });
        }
        let _ = writeln!(text, ": {}", sanitize_markdown_line(&skill.description));
    }
    text
}
