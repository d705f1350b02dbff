//! The two streams of the process: data on stdout, talk on stderr.

use std::io::{self, Write};
use std::path::Path;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use super::visible::acts_or_hides;
use super::{Page, Places};

/// How much is told on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Errors and warnings.
    Normal,
    /// Advice too.
    Verbose,
}

/// Where everything that the program says goes.
///
/// A reader that went away (`skillbox list | head`) is no failure: what follows is dropped in silence, and the exit
/// code stays the command's own.
pub struct Terminal {
    out: Channel<io::Stdout>,
    err: Channel<io::Stderr>,
    width: usize,
    places: Places,
}

impl Terminal {
    /// The streams that the process was started with.
    pub fn of_process(places: Places) -> Self {
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self {
            out: Channel::new(io::stdout()),
            err: Channel::new(io::stderr()),
            width,
            places,
        }
    }

    /// An empty page of this terminal's width.
    pub fn page(&self) -> Page {
        Page::new(self.width, self.places.clone())
    }

    /// Shows paths as seen from this directory.
    pub fn stand_in(&mut self, dir: &Path) {
        self.places.working_dir = dir.to_owned();
    }

    /// Whether somebody watches stderr, so that progress is worth showing.
    pub fn is_watched(&self) -> bool {
        self.err.on_terminal
    }

    /// Whether answer and talk appear on one screen, one below the other.
    pub fn is_one_screen(&self) -> bool {
        self.out.on_terminal && self.err.on_terminal
    }

    /// The answer, for people.
    pub fn show(&mut self, page: Page) -> io::Result<()> {
        self.out.styled(&page.into_text())
    }

    /// What is worth knowing beside the answer.
    pub fn tell(&mut self, page: Page) -> io::Result<()> {
        self.err.styled(&page.into_text())
    }

    /// The answer, for programs. Characters that a terminal would obey are written as JSON escapes.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
        self.out.write(without_acting(&text).as_bytes())?;
        self.out.write(b"\n")
    }

    /// Exact bytes to stdout; what a terminal would obey is made visible only where it is one.
    pub fn exact_out(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.exact(text)
    }

    /// Exact bytes to stderr; what a terminal would obey is made visible only where it is one.
    pub fn exact_err(&mut self, text: &[u8]) -> io::Result<()> {
        self.err.exact(text)
    }

    /// Styled text of our own making, such as clap's help.
    pub fn own_text(&mut self, to_stderr: bool, text: &str) -> io::Result<()> {
        if to_stderr {
            self.err.styled(text)
        } else {
            self.out.styled(text)
        }
    }
}

struct Channel<S> {
    stream: S,
    on_terminal: bool,
    colour: bool,
    closed: bool,
}

impl<S: Write + RawStream> Channel<S> {
    fn new(stream: S) -> Self {
        let colour = AutoStream::choice(&stream) != ColorChoice::Never;
        Self {
            on_terminal: stream.is_terminal(),
            colour,
            closed: false,
            stream,
        }
    }

    fn styled(&mut self, text: &str) -> io::Result<()> {
        if self.colour {
            self.write(text.as_bytes())
        } else {
            self.write(anstream::adapter::strip_str(text).to_string().as_bytes())
        }
    }

    fn exact(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.on_terminal {
            return self.write(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<_> = text.split('\n').map(super::visible).collect();
        self.write(lines.join("\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.stream.write_all(bytes).and_then(|()| self.stream.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result,
        }
    }
}

/// JSON in which nothing acts on a terminal. Outside strings JSON is ASCII, so every such character stands in one and
/// may be written as an escape.
pub fn without_acting(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && acts_or_hides(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_the_same_value_and_carries_nothing_that_acts() {
        let value = serde_json::json!({"name": "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}\u{7f}", "lines": "x\ny"});
        let text = without_acting(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.chars().all(|c| c == '\n' || !acts_or_hides(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
