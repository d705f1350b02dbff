//! Renders the prompt section in the dialect and frame of the session.

use std::fmt::Write as _;

use super::input::PromptInput;
use super::load_instructions::render_load_instructions;
use super::load_warnings::render_load_warnings;
use super::loaded_skill::render_tagged;
use super::source_locations::render_locations;
use super::{agentskills, deepagents, saa, skillbox, trpc};
use crate::dialect::Dialect;
use crate::prompt_template::TemplateValues;
use crate::sanitize::{escape_closing_tag, sanitize_markdown_line, sanitize_xml_line};
use crate::settings::PromptFrame;
use crate::state::NoteKind;

const RESULT_TAG: &str = "skill_result";

/// Renders the section, if there is one.
pub(crate) fn render_section(input: &PromptInput<'_>) -> Option<String> {
    let dialect = input.settings.dialect;
    let has_no_skills = input.state.visible(input.agent).next().is_none();
    if has_no_skills && matches!(dialect, Dialect::Skillbox | Dialect::Trpc | Dialect::Saa) {
        return None;
    }
    let mut text = match &input.settings.prompt_frame {
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
            let frame = template.fill(&TemplateValues {
                locations: &render_locations(&input.settings.sources),
                load_warnings: &render_load_warnings(input.warnings),
                list: &list,
                load_instructions: &render_load_instructions(input),
            });
            frame + &render_loaded(input)
        }
        PromptFrame::Dialect => match dialect {
            Dialect::Skillbox => skillbox::render_section(input, &render_load_instructions(input)),
            Dialect::Trpc => trpc::render_section(input, &render_load_instructions(input)),
            Dialect::Deepagents => deepagents::render_section(input) + &render_loaded(input),
            Dialect::Saa => saa::render_section(input, &render_load_instructions(input)) + &render_loaded(input),
            Dialect::Agentskills => agentskills::render_section(input),
        },
    };
    push_notes(&mut text, input);
    Some(text)
}

/// Renders the texts of loaded skills for a frame that does not contain them.
fn render_loaded(input: &PromptInput<'_>) -> String {
    match input.settings.dialect {
        Dialect::Trpc => trpc::render_loaded(input),
        Dialect::Skillbox => skillbox::render_loaded(input),
        _ => input
            .loaded_texts
            .iter()
            .map(|skill| format!("\n{}", render_tagged(skill)))
            .collect(),
    }
}

fn push_notes(text: &mut String, input: &PromptInput<'_>) {
    let (hooks, results): (Vec<_>, Vec<_>) = input
        .state
        .notes(input.agent)
        .iter()
        .partition(|note| note.kind == NoteKind::Hook);
    if !hooks.is_empty() {
        text.push_str("\n### Notes from loaded skills\n\n");
    }
    for note in hooks {
        let (skill, note) = (
            sanitize_markdown_line(note.skill.as_str()),
            sanitize_markdown_line(&note.text),
        );
        let _ = writeln!(text, "- {skill}: {note}");
    }
    if !results.is_empty() {
        text.push_str("\n### Results of forked skills\n\n");
    }
    for note in results {
        let (skill, result) = (
            sanitize_xml_line(note.skill.as_str()),
            escape_closing_tag(&note.text, RESULT_TAG),
        );
        let _ = writeln!(text, "<{RESULT_TAG} skill=\"{skill}\">\n{result}\n</{RESULT_TAG}>");
    }
}
