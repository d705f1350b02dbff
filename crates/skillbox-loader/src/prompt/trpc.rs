//! The prompt section of trpc-agent-go: overview, guidance, then the loaded skills.

use std::fmt;

use super::input::PromptInput;
use super::list_entry::{ListEntry, write_argument_hint};
use super::loaded_skill::render_plain;
use super::markdown_list::write_markdown_list;
use crate::sanitize::Markup;

pub(crate) fn render_section(input: &PromptInput<'_>, load_instructions: &str) -> String {
    let mut text = String::from("Available skills:\n");
    write_list(&mut text, input);
    text.push_str("\nTooling and workspace guidance:\n");
    text.push_str(load_instructions);
    text.push_str(&render_loaded(input));
    text
}

/// Renders the texts of the loaded skills.
pub(crate) fn render_loaded(input: &PromptInput<'_>) -> String {
    input
        .loaded_texts
        .iter()
        .map(|skill| format!("\n{}", render_plain(skill)))
        .collect()
}

/// Writes one line per skill.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    write_markdown_list(text, input, &write_entry);
}

fn write_entry(out: &mut dyn fmt::Write, entry: &ListEntry<'_>, description: Option<&str>) -> fmt::Result {
    out.write_str("- ")?;
    out.write_str(&entry.skill.name_line(Markup::Markdown))?;
    if entry.skill.is_manual_only() {
        out.write_str(" [Manual only]")?;
    }
    match description {
        Some(description) => {
            out.write_str(": ")?;
            out.write_str(description)?;
            write_argument_hint(out, entry.skill)
        }
        None => Ok(()),
    }
}
