//! The output of a command: one value, printed for people or as JSON.

use serde::Serialize;
use skillbox_model::{Diagnostic, ExitCode};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::diagnostics::DiagnosticsStyle;
use crate::render::{Page, Terminal, diagnostics};

/// The result of a command. Its serialised form is the output of `--json`.
pub trait CommandOutput: Serialize {
    /// Renders the result for people.
    fn render(&self, page: &mut Page);

    /// Diagnostics printed on stderr for people. JSON output contains them already.
    fn diagnostics(&self) -> &[Diagnostic] {
        &[]
    }

    /// How the diagnostics are printed.
    fn diagnostics_style(&self) -> DiagnosticsStyle {
        DiagnosticsStyle::Complete
    }

    /// The exit code of the command.
    fn exit_code(&self) -> u8 {
        ExitCode::OK
    }
}

/// Prints the result in the requested form and returns its exit code.
pub fn print_output(
    output: &impl CommandOutput,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    if context.as_json {
        terminal.print_json(output)?;
    } else {
        let mut page = terminal.page();
        output.render(&mut page);
        terminal.print(page)?;
        let style = output.diagnostics_style();
        diagnostics::print_diagnostics(output.diagnostics(), style, context.verbosity, terminal)?;
    }
    Ok(output.exit_code())
}
