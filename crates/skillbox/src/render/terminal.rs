//! The two output streams of the process: data on stdout, messages on stderr.

use std::io::{self, Write};
use std::path::Path;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use super::escape::{escape_controls, is_control_or_invisible};
use super::page::Page;
use super::short_path::PathShortener;

/// How much is printed on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Errors and warnings.
    Normal,
    /// Errors, warnings and notes.
    Verbose,
}

/// All output of the program.
///
/// A closed pipe (`skillbox list | head`) is not an error: further output is dropped, and the exit code is unchanged.
pub struct Terminal {
    out: OutputStream<io::Stdout>,
    err: OutputStream<io::Stderr>,
    width: usize,
    shortener: PathShortener,
}

impl Terminal {
    /// The streams that the process was started with.
    pub fn of_process(shortener: PathShortener) -> Self {
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self {
            out: OutputStream::new(io::stdout()),
            err: OutputStream::new(io::stderr()),
            width,
            shortener,
        }
    }

    /// An empty page of this terminal's width.
    pub fn page(&self) -> Page {
        Page::new(self.width, self.shortener.clone())
    }

    /// Shortens paths relative to this directory from now on.
    pub fn set_working_dir(&mut self, dir: &Path) {
        self.shortener.working_dir = dir.to_owned();
    }

    /// Whether stderr is a terminal, so that progress can be shown.
    pub fn is_stderr_terminal(&self) -> bool {
        self.err.is_terminal
    }

    /// Whether stdout and stderr are both terminals, so that messages appear below the output.
    pub fn are_both_terminals(&self) -> bool {
        self.out.is_terminal && self.err.is_terminal
    }

    /// Prints output for people on stdout.
    pub fn print(&mut self, page: Page) -> io::Result<()> {
        self.out.write_styled(&page.into_text())
    }

    /// Prints a message for people on stderr.
    pub fn print_message(&mut self, page: Page) -> io::Result<()> {
        self.err.write_styled(&page.into_text())
    }

    /// Prints output for programs on stdout. Control characters are written as JSON escapes.
    pub fn print_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
        self.out.write(escape_json(&text).as_bytes())?;
        self.out.write(b"\n")
    }

    /// Writes bytes to stdout: unchanged to a file or pipe, with escaped control characters to a terminal.
    pub fn write_stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_bytes(bytes)
    }

    /// Writes bytes to stderr: unchanged to a file or pipe, with escaped control characters to a terminal.
    pub fn write_stderr(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.err.write_bytes(bytes)
    }

    /// Prints trusted text with escape sequences, such as clap's help, on stdout.
    pub fn print_styled(&mut self, text: &str) -> io::Result<()> {
        self.out.write_styled(text)
    }

    /// Prints trusted text with escape sequences, such as clap's errors, on stderr.
    pub fn print_styled_message(&mut self, text: &str) -> io::Result<()> {
        self.err.write_styled(text)
    }
}

struct OutputStream<S> {
    stream: S,
    is_terminal: bool,
    has_colour: bool,
    is_closed: bool,
}

impl<S: Write + RawStream> OutputStream<S> {
    fn new(stream: S) -> Self {
        let has_colour = AutoStream::choice(&stream) != ColorChoice::Never;
        Self {
            is_terminal: stream.is_terminal(),
            has_colour,
            is_closed: false,
            stream,
        }
    }

    fn write_styled(&mut self, text: &str) -> io::Result<()> {
        if self.has_colour {
            self.write(text.as_bytes())
        } else {
            self.write(anstream::adapter::strip_str(text).to_string().as_bytes())
        }
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_terminal {
            return self.write(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<_> = text.split('\n').map(escape_controls).collect();
        self.write(lines.join("\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        match self.stream.write_all(bytes).and_then(|()| self.stream.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            result => result,
        }
    }
}

/// Escapes control and invisible characters in JSON. Outside strings JSON is ASCII, so every such character is inside a
/// string and may be written as an escape.
pub fn escape_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_control_or_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_has_the_same_value_and_no_control_characters() {
        let value = serde_json::json!({"name": "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}\u{7f}", "lines": "x\ny"});
        let text = escape_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.chars().all(|c| c == '\n' || !is_control_or_invisible(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
