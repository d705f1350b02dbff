//! The prompt section of trpc-agent-go: overview, guidance, then what was loaded.

use std::fmt;

use super::bodies::loaded_plain;
use super::guidance::{Occasion, guidance};
use super::listed::Listed;
use super::markdown_list::write_markdown_list;
use super::section::PromptInput;
use crate::one_line::Markup;

pub(crate) fn section(input: &PromptInput<'_>) -> String {
    let occasion = Occasion {
        manual_only: input.state.visible(input.agent).any(|skill| skill.is_manual_only()),
    };
    let mut text = String::from("Available skills:\n");
    write_list(&mut text, input);
    text.push_str("\nTooling and workspace guidance:\n");
    text.push_str(&guidance(input.settings, &occasion));
    text.push_str(&loaded(input));
    text
}

/// The words of the loaded skills.
pub(crate) fn loaded(input: &PromptInput<'_>) -> String {
    input
        .bodies
        .iter()
        .map(|body| format!("\n{}", loaded_plain(body)))
        .collect()
}

/// One line for each skill.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    write_markdown_list(text, input, &write_entry);
}

fn write_entry(out: &mut dyn fmt::Write, listed: &Listed<'_>, description: Option<&str>) -> fmt::Result {
    out.write_str("- ")?;
    out.write_str(&listed.skill.name_line(Markup::Markdown))?;
    if listed.skill.is_manual_only() {
        out.write_str(" [Manual only]")?;
    }
    match description {
        Some(description) => {
            out.write_str(": ")?;
            out.write_str(description)
        }
        None => Ok(()),
    }
}
