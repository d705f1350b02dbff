//! What a command gives: one value, shown to people or to programs.

use serde::Serialize;
use skillbox_model::{Diagnostic, ExitCode};

use super::Context;
use crate::failure::Failure;
use crate::render::{Page, Terminal, findings};

/// The result of a command. Its serialised form is the `--json` twin.
pub trait Answer: Serialize {
    /// The same for people.
    fn render(&self, page: &mut Page);

    /// What people are told on stderr; programs find it in the answer.
    fn findings(&self) -> &[Diagnostic] {
        &[]
    }

    /// What the answer means to a script.
    fn exit_code(&self) -> u8 {
        ExitCode::OK
    }
}

/// Shows an answer in the form that was asked for and gives its exit code.
pub fn show(answer: &impl Answer, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    if context.as_json {
        terminal.json(answer)?;
    } else {
        let mut page = terminal.page();
        answer.render(&mut page);
        terminal.show(page)?;
        findings::tell(answer.findings(), context.verbosity, terminal)?;
    }
    Ok(answer.exit_code())
}
