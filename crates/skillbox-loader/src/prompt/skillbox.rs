//! The prompt section of our own dialect.

use std::fmt;

use super::input::PromptInput;
use super::list_entry::{ListEntry, write_argument_hint};
use super::loaded_skill::render_tagged;
use super::markdown_list::write_markdown_list;
use crate::sanitize::{Markup, sanitize_markdown_line};

/// Renders the section. Constant parts come first, so that a prompt cache can reuse them after a skill is loaded.
pub(crate) fn render_section(input: &PromptInput<'_>, load_instructions: &str) -> String {
    let mut text = String::from(
        "## Skills\n\nA skill is a folder of instructions, documents and scripts for one kind of task. The list below \
         says only what each skill is for; load a skill to get the rest.\n\n",
    );
    text.push_str(load_instructions);
    text.push_str("\n### Available skills\n\n");
    write_list(&mut text, input);
    text.push_str(&render_loaded(input));
    text
}

/// Renders the texts of the loaded skills.
pub(crate) fn render_loaded(input: &PromptInput<'_>) -> String {
    if input.loaded_texts.is_empty() {
        return String::new();
    }
    let blocks: Vec<String> = input.loaded_texts.iter().map(render_tagged).collect();
    format!("\n### Loaded skills\n\n{}", blocks.join("\n"))
}

/// Writes one line per skill.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    write_markdown_list(text, input, &write_entry);
}

fn write_entry(out: &mut dyn fmt::Write, entry: &ListEntry<'_>, description: Option<&str>) -> fmt::Result {
    let skill = entry.skill;
    out.write_str("- ")?;
    out.write_str(&skill.name_line(Markup::Markdown))?;
    if entry.is_loaded {
        out.write_str(" [Loaded]")?;
    }
    if skill.is_manual_only() {
        out.write_str(" [Manual only]")?;
    }
    let Some(description) = description else { return Ok(()) };
    out.write_str(": ")?;
    out.write_str(description)?;
    write_argument_hint(out, skill)?;
    if let Some(compatibility) = &skill.compatibility {
        write!(out, " (compatibility: {})", sanitize_markdown_line(compatibility))?;
    }
    Ok(())
}
