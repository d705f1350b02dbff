//! A list of skills, one line of Markdown each.

use super::fit::{EntryStyle, WriteEntry, fit};
use super::guidance::omitted_note;
use super::listed::listed;
use super::section::PromptInput;
use crate::one_line::Markup;

/// Writes every visible skill that fits, and counts the others.
pub(crate) fn write_markdown_list(text: &mut String, input: &PromptInput<'_>, write: &WriteEntry<'_>) {
    let skills = listed(input.state, input.agent);
    let style = EntryStyle {
        markup: Markup::Markdown,
        write,
    };
    let note_chars = omitted_note(input.settings, skills.len()).len() + 1;
    let fit = fit(&skills, input.settings.description_budget, note_chars, &style);
    // Writing into a string cannot fail.
    let _ = fit.write(text, &style, |_| true);
    if fit.omitted > 0 {
        input.budget_exceeded(fit.omitted);
        text.push_str(&omitted_note(input.settings, fit.omitted));
        text.push('\n');
    }
}
