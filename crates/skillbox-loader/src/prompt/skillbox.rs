//! Our own prompt section.

use std::fmt;

use super::bodies::loaded_block;
use super::guidance::{Occasion, guidance};
use super::listed::Listed;
use super::markdown_list::write_markdown_list;
use super::section::PromptInput;
use crate::one_line::{Markup, one_line};

/// Steady parts come first, so that a prompt cache keeps them when a skill is loaded.
pub(crate) fn section(input: &PromptInput<'_>) -> String {
    let occasion = Occasion {
        manual_only: input.state.visible(input.agent).any(|skill| skill.is_manual_only()),
    };
    let mut text = String::from(
        "## Skills\n\nA skill is a folder of instructions, documents and scripts for one kind of task. Listed here is \
         only what each skill is for; the rest comes when you load it.\n\n",
    );
    text.push_str(&guidance(input.settings, &occasion));
    text.push_str("\n### Available skills\n\n");
    write_list(&mut text, input);
    text.push_str(&loaded(input));
    text
}

/// The words of the loaded skills.
pub(crate) fn loaded(input: &PromptInput<'_>) -> String {
    if input.bodies.is_empty() {
        return String::new();
    }
    let blocks: Vec<String> = input.bodies.iter().map(loaded_block).collect();
    format!("\n### Loaded skills\n\n{}", blocks.join("\n"))
}

/// One line for each skill.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    write_markdown_list(text, input, &write_entry);
}

fn write_entry(out: &mut dyn fmt::Write, listed: &Listed<'_>, description: Option<&str>) -> fmt::Result {
    let skill = listed.skill;
    out.write_str("- ")?;
    out.write_str(&skill.name_line(Markup::Markdown))?;
    if listed.loaded {
        out.write_str(" [Loaded]")?;
    }
    if skill.is_manual_only() {
        out.write_str(" [Manual only]")?;
    }
    let Some(description) = description else { return Ok(()) };
    out.write_str(": ")?;
    out.write_str(description)?;
    if let Some(hint) = skill.argument_hint() {
        write!(out, " (arguments: {})", one_line(hint))?;
    }
    if let Some(needs) = &skill.compatibility {
        write!(out, " (compatibility: {})", one_line(needs))?;
    }
    Ok(())
}
