//! The list in the XML of the Agent Skills reference, with each description on one line.

use std::fmt;

use super::guidance::omitted_note;
use super::input::PromptInput;
use super::list_budget::{EntryStyle, fit_list};
use super::list_entry::{ListEntry, list_entries};
use super::loaded_skill::render_tagged;
use crate::sanitize::Markup;

pub(crate) fn render_section(input: &PromptInput<'_>) -> String {
    let mut text = String::new();
    write_list(&mut text, input);
    text.extend(
        input
            .loaded_texts
            .iter()
            .map(|skill| format!("\n{}", render_tagged(skill))),
    );
    text
}

/// Writes the block of available skills.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    let skills = list_entries(input.state, input.agent);
    let style = EntryStyle {
        markup: Markup::Xml,
        write: &write_entry,
    };
    let note = |omitted| format!("<!-- {} -->\n", omitted_note(input.settings, omitted));
    let list = fit_list(&skills, input.settings.max_list_chars, note(skills.len()).len(), &style);
    text.push_str("<available_skills>\n");
    // Writing into a string cannot fail.
    let _ = list.write(text, &style, |_| true);
    if list.omitted > 0 {
        input.log_budget_exceeded(list.omitted);
        text.push_str(&note(list.omitted));
    }
    text.push_str("</available_skills>\n");
}

/// Writes one entry. The location stays even without a description: the skill could not be opened without it.
fn write_entry(out: &mut dyn fmt::Write, entry: &ListEntry<'_>, description: Option<&str>) -> fmt::Result {
    let skill = entry.skill;
    for part in ["<skill>\n<name>\n", &skill.name_line(Markup::Xml), "\n</name>\n"] {
        out.write_str(part)?;
    }
    if let Some(description) = description {
        for part in ["<description>\n", description, "\n</description>\n"] {
            out.write_str(part)?;
        }
    }
    for part in ["<location>\n", &skill.path_line(Markup::Xml), "\n</location>\n</skill>"] {
        out.write_str(part)?;
    }
    Ok(())
}
