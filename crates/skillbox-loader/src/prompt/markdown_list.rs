//! A Markdown list of skills with one line per skill.

use super::guidance::omitted_note;
use super::input::PromptInput;
use super::list_budget::{EntryStyle, WriteEntry, fit_list};
use super::list_entry::list_entries;
use crate::sanitize::Markup;

/// Writes every visible skill that fits into the budget, and counts the others.
pub(crate) fn write_markdown_list(text: &mut String, input: &PromptInput<'_>, write: &WriteEntry<'_>) {
    let skills = list_entries(input.state, input.agent);
    let style = EntryStyle {
        markup: Markup::Markdown,
        write,
    };
    let note_chars = omitted_note(input.settings, skills.len()).len() + 1;
    let list = fit_list(&skills, input.settings.max_list_chars, note_chars, &style);
    // Writing into a string cannot fail.
    let _ = list.write(text, &style, |_| true);
    if list.omitted > 0 {
        input.log_budget_exceeded(list.omitted);
        text.push_str(&omitted_note(input.settings, list.omitted));
        text.push('\n');
    }
}
