//! The failure of a command: its error object and its exit code.

use std::error::Error;
use std::io;

use serde::Serialize;
use skillbox_model::{ErrorBody, ErrorCode, ExitCode, with_causes};

use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{SettingError, UntrustedSetting};

/// An error that ends the command.
#[derive(Debug)]
pub struct Failure {
    body: ErrorBody,
    exit_code: u8,
}

impl Failure {
    /// A failure with the exit code [`ExitCode::FAILURE`].
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            body: ErrorBody::new(code, message),
            exit_code: ExitCode::FAILURE,
        }
    }

    /// A wrong command line or setting.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit_code: ExitCode::USAGE,
            ..Self::new(ErrorCode::InvalidRequest, message).with_hint(hint)
        }
    }

    /// The same failure with the exit code of a refused run. Only `main` calls it, for commands that run a script.
    pub fn with_run_exit_code(mut self) -> Self {
        self.exit_code = ExitCode::REFUSED;
        self
    }

    /// The failure for an error object.
    pub fn from_body(body: ErrorBody) -> Self {
        Self {
            body,
            exit_code: ExitCode::FAILURE,
        }
    }

    /// An invalid field of a request.
    pub fn invalid_field(field: &str, message: impl Into<String>) -> Self {
        Self::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message).with_field(field))
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The error code.
    pub fn code(&self) -> ErrorCode {
        self.body.code
    }

    /// The error message.
    pub fn message(&self) -> &str {
        &self.body.message
    }

    /// The suggestion, if there is one.
    pub fn hint(&self) -> Option<&str> {
        self.body.hint.as_deref()
    }

    /// The same failure with a specific hint.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    /// The failure for an error, with its chain of causes.
    pub fn from_error(code: ErrorCode, error: &dyn Error) -> Self {
        Self::new(code, with_causes(error))
    }

    /// Prints the failure: the error object on stdout for programs, text on stderr for people.
    pub fn print(&self, terminal: &mut Terminal, as_json: bool) -> io::Result<u8> {
        if as_json {
            terminal.print_json(&ErrorObject { error: &self.body })?;
        } else {
            let mut page = terminal.page();
            self.render(&mut page);
            terminal.print_message(page)?;
        }
        Ok(self.exit_code)
    }

    fn render(&self, page: &mut Page) {
        let field = self
            .body
            .field
            .as_ref()
            .map_or_else(String::new, |field| format!("{field}: "));
        let message = format!("{field}{}", self.body.message);
        let mut lines = message.lines();
        page.labelled(
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
            page.labelled(0, Span::new(Tone::Hint, "hint:"), 7, Tone::Plain, hint);
        }
    }
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    error: &'a ErrorBody,
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        Self::usage(with_causes(&error), error.hint())
    }
}

impl Failure {
    /// The failure of a command in a directory whose config file needs the user's trust. `refused` is not empty.
    pub fn untrusted_settings(refused: &[UntrustedSetting]) -> Self {
        let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
        let mut failure = Self::new(ErrorCode::UntrustedSetting, lines.join("\n")).with_hint(
            "read the file; if you trust it, run `skillbox config trust` in its directory. To ignore it, name another \
             file with --config, or /dev/null",
        );
        failure.body.field = refused.first().map(|setting| setting.key.to_owned());
        failure.exit_code = ExitCode::USAGE;
        failure
    }
}

impl From<io::Error> for Failure {
    /// Only for errors of writing the output. Other I/O errors are converted where they occur, with more detail.
    fn from(error: io::Error) -> Self {
        Self::new(ErrorCode::Storage, format!("cannot write the output: {error}"))
            .with_hint("check where stdout is redirected to")
    }
}
