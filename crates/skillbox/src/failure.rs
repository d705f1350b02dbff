//! A command that could not do its work: what is said, and the exit code.

use std::error::Error;
use std::io;

use serde::Serialize;
use skillbox_model::{ErrorBody, ErrorCode, ExitCode, with_causes};

use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::SettingError;

/// An error on its way to the user.
#[derive(Debug)]
pub struct Failure {
    body: ErrorBody,
    exit: u8,
}

impl Failure {
    /// The thing asked about is bad, or could not be had.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            body: ErrorBody::new(code, message),
            exit: ExitCode::BAD,
        }
    }

    /// The command line or a setting is wrong.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit: ExitCode::USAGE,
            ..Self::new(ErrorCode::InvalidRequest, message).hint(hint)
        }
    }

    /// A run that was refused, or that failed on our side.
    pub fn refused(body: ErrorBody) -> Self {
        Self {
            body,
            exit: ExitCode::REFUSED,
        }
    }

    /// The same with the exit code of a refused run.
    pub fn refusal(mut self) -> Self {
        self.exit = ExitCode::REFUSED;
        self
    }

    /// Another command that was refused for the same reasons.
    pub fn from_body(body: ErrorBody) -> Self {
        Self {
            body,
            exit: ExitCode::BAD,
        }
    }

    /// The exit code that goes with it.
    pub fn exit(&self) -> u8 {
        self.exit
    }

    /// What kind of failure it is.
    pub fn code(&self) -> ErrorCode {
        self.body.code
    }

    /// What is said about it.
    pub fn message(&self) -> &str {
        &self.body.message
    }

    /// The same with its own advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    /// An error of a library with everything that caused it.
    pub fn from_error(code: ErrorCode, error: &dyn Error) -> Self {
        Self::new(code, with_causes(error))
    }

    /// Tells it: one object on stdout for programs, words on stderr for people.
    pub fn tell(&self, terminal: &mut Terminal, as_json: bool) -> io::Result<u8> {
        if as_json {
            terminal.json(&Wire { error: &self.body })?;
        } else {
            let mut page = terminal.page();
            self.render(&mut page);
            terminal.tell(page)?;
        }
        Ok(self.exit)
    }

    fn render(&self, page: &mut Page) {
        let place = self
            .body
            .field
            .as_ref()
            .map_or_else(String::new, |field| format!("{field}: "));
        let message = format!("{place}{}", self.body.message);
        let mut lines = message.lines();
        page.beside(
            0,
            Span::new(Tone::Bad, "error:"),
            7,
            Tone::Plain,
            lines.next().unwrap_or_default(),
        );
        for line in lines {
            page.paragraph(7, Tone::Plain, line);
        }
        if let Some(hint) = &self.body.hint {
            page.beside(0, Span::new(Tone::Hint, "hint:"), 7, Tone::Plain, hint);
        }
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    error: &'a ErrorBody,
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        Self::usage(with_causes(&error), error.hint())
    }
}

impl From<io::Error> for Failure {
    /// Writing an answer failed; everything else is told with more words where it happens.
    fn from(error: io::Error) -> Self {
        Self::new(ErrorCode::Storage, format!("cannot write the answer: {error}")).hint("check where stdout leads")
    }
}
