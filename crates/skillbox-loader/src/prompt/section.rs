//! Puts the prompt section together, in the dialect and frame of the session.

use std::fmt::Write as _;

use super::bodies::{BodyText, loaded_block};
use super::source_label::locations;
use super::warnings::load_warnings;
use super::{agentskills, deepagents, saa, skillbox, trpc};
use crate::agent::AgentName;
use crate::dialect::Dialect;
use crate::one_line::one_line;
use crate::settings::{PromptFrame, Settings};
use crate::state::SkillsState;

/// Everything that a prompt section is made of. The same input gives the same bytes.
pub(crate) struct PromptInput<'p> {
    pub(crate) settings: &'p Settings,
    pub(crate) state: &'p SkillsState,
    pub(crate) agent: &'p AgentName,
    /// What loaded skills say, as far as the prompt carries it.
    pub(crate) bodies: &'p [BodyText],
    /// Skills that could not be loaded, for dialects that tell.
    pub(crate) warnings: &'p [String],
}

impl PromptInput<'_> {
    pub(crate) fn budget_exceeded(&self, excluded: usize) {
        let budget = self.settings.description_budget;
        tracing::warn!(
            excluded,
            budget,
            "description budget exceeded, {excluded} skills excluded"
        );
    }
}

/// The section; none where there is nothing to say.
pub(crate) fn prompt_section(input: &PromptInput<'_>) -> Option<String> {
    let dialect = input.settings.dialect;
    let nothing_there = input.state.visible(input.agent).next().is_none();
    if nothing_there && matches!(dialect, Dialect::Skillbox | Dialect::Trpc | Dialect::Saa) {
        return None;
    }
    let mut text = match &input.settings.prompt {
        PromptFrame::Absent => return None,
        PromptFrame::Template(template) => {
            let write_list = match dialect {
                Dialect::Skillbox => skillbox::write_list,
                Dialect::Trpc => trpc::write_list,
                Dialect::Deepagents => deepagents::write_list,
                Dialect::Saa => saa::write_list,
                Dialect::Agentskills => agentskills::write_list,
            };
            let mut list = String::new();
            write_list(&mut list, input);
            let frame = template.fill(
                &locations(&input.settings.sources),
                &load_warnings(input.warnings),
                &list,
            );
            frame + &loaded(input)
        }
        PromptFrame::Dialect => match dialect {
            Dialect::Skillbox => skillbox::section(input),
            Dialect::Trpc => trpc::section(input),
            Dialect::Deepagents => deepagents::section(input) + &loaded(input),
            Dialect::Saa => saa::section(input) + &loaded(input),
            Dialect::Agentskills => agentskills::section(input),
        },
    };
    push_notes(&mut text, input);
    Some(text)
}

/// The words of loaded skills where the dialect's own frame has no place for them.
fn loaded(input: &PromptInput<'_>) -> String {
    match input.settings.dialect {
        Dialect::Trpc => trpc::loaded(input),
        Dialect::Skillbox => skillbox::loaded(input),
        _ => input
            .bodies
            .iter()
            .map(|body| format!("\n{}", loaded_block(body)))
            .collect(),
    }
}

fn push_notes(text: &mut String, input: &PromptInput<'_>) {
    let notes = input.state.notes(input.agent);
    if notes.is_empty() {
        return;
    }
    text.push_str("\n### Notes from loaded skills\n\n");
    for note in notes {
        let _ = writeln!(text, "- {}: {}", one_line(note.skill.as_str()), one_line(&note.text));
    }
}
