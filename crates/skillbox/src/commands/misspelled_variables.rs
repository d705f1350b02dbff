//! Warns about environment variables that look like misspelled settings.

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Span, Terminal, Tone, Verbosity};

/// Prints one warning for each variable.
pub fn warn_about_misspelled_variables(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    if context.verbosity == Verbosity::Quiet {
        return Ok(());
    }
    for text in misspelled_variables(context) {
        let mut page = terminal.page();
        page.labelled(0, Span::new(Tone::Warning, "warning:"), 9, Tone::Plain, &text);
        terminal.print_message(page)?;
    }
    Ok(())
}

/// Logs the same warnings, for a server whose standard error has JSON lines only.
pub fn log_misspelled_variables(context: &Context<'_>) {
    for text in misspelled_variables(context) {
        tracing::warn!("{text}");
    }
}

fn misspelled_variables(context: &Context<'_>) -> Vec<String> {
    let variables = context.layers.misspelled_variables().into_iter();
    variables
        .map(|(name, meant)| format!("the environment variable {name} is not a setting; did you mean {meant}?"))
        .collect()
}
