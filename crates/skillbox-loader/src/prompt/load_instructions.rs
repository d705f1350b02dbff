//! The text that tells a model how to load skills.

use super::guidance::render_guidance;
use super::input::PromptInput;
use super::saa;
use crate::dialect::Dialect;

/// Renders the host's own text, or the dialect's. Unless it is empty, it ends with a line break.
pub(crate) fn render_load_instructions(input: &PromptInput<'_>) -> String {
    match &input.settings.load_instructions {
        Some(text) if text.is_empty() || text.ends_with('\n') => text.clone(),
        Some(text) => format!("{text}\n"),
        None => match input.settings.dialect {
            Dialect::Saa => saa::render_how_to_read(input),
            Dialect::Skillbox | Dialect::Trpc | Dialect::Deepagents | Dialect::Agentskills => render_guidance(input),
        },
    }
}
