//! Builds text output for people.
//!
//! Callers pass text and its tone. The page escapes control characters in every text, and only the page itself writes
//! escape sequences, so that text from a skill cannot inject one.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use skillbox_model::Diagnostic;
use skillbox_repository::render_diagnostics;

use super::escape::{escape_controls, to_one_line};
use super::short_path::PathShortener;
use super::wrap::{display_width, truncate_words, wrap};

/// The role of a text, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// A heading.
    Heading,
    /// The name of a thing.
    Name,
    /// Secondary information.
    Dim,
    /// Success.
    Good,
    /// A warning.
    Warning,
    /// A failure.
    Bad,
    /// A suggested action.
    Hint,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Name => AnsiColor::Cyan.on_default().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Warning => AnsiColor::Yellow.on_default().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Hint => AnsiColor::Green.on_default(),
        }
    }
}

/// A part of a line, with one tone.
#[derive(Clone, Debug)]
pub struct Span {
    tone: Tone,
    text: String,
}

impl Span {
    /// A text in a tone; control characters are escaped.
    pub fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self {
            tone,
            text: escape_controls(text.as_ref()).into_owned(),
        }
    }

    /// Ordinary text.
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Plain, text)
    }

    fn width(&self) -> usize {
        display_width(&self.text)
    }
}

/// Lines of styled text for a given width.
#[derive(Debug)]
pub struct Page {
    text: String,
    width: usize,
    shortener: PathShortener,
}

impl Page {
    /// An empty page for a terminal with that many columns.
    pub fn new(width: usize, shortener: PathShortener) -> Self {
        Self {
            text: String::new(),
            width: width.clamp(40, 100),
            shortener,
        }
    }

    /// A path relative to the working directory or the home directory, where that is shorter.
    pub fn short_path(&self, path: &Path) -> String {
        self.shortener.shorten(path)
    }

    /// The finished text, with escape sequences for its tones.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Adds a blank line, unless the page is empty or ends with one.
    pub fn blank_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a heading after a blank line.
    pub fn heading(&mut self, text: &str) {
        self.blank_line();
        self.line(&[Span::new(Tone::Heading, text)]);
    }

    /// Adds one line without wrapping it.
    pub fn line(&mut self, spans: &[Span]) {
        if let Some((last, before)) = spans.split_last() {
            for span in before {
                self.push(span.tone, &span.text);
            }
            self.push(last.tone, last.text.trim_end());
        }
        self.text.push('\n');
    }

    /// Adds a text as one paragraph, wrapped and indented.
    pub fn paragraph(&mut self, indent: usize, tone: Tone, text: &str) {
        for line in wrap(&to_one_line(text), self.width - indent) {
            self.push(Tone::Plain, &" ".repeat(indent));
            self.push(tone, &line);
            self.text.push('\n');
        }
    }

    /// Adds a label, and the wrapped text in a column next to it.
    pub fn labelled(&mut self, indent: usize, label: Span, column: usize, tone: Tone, text: &str) {
        let lines = wrap(&to_one_line(text), self.text_width(column));
        self.push_columns(indent, label, column, tone, &lines);
    }

    /// Adds a label and at most `max_lines` lines of text; truncated text ends in an ellipsis.
    pub fn labelled_summary(&mut self, indent: usize, label: Span, column: usize, max_lines: usize, text: &str) {
        let mut lines = wrap(&to_one_line(text), self.text_width(column));
        if lines.len() > max_lines {
            lines.truncate(max_lines);
            if let Some(last) = lines.last_mut() {
                *last = truncate_words(last, self.text_width(column));
            }
        }
        self.push_columns(indent, label, column, Tone::Plain, &lines);
    }

    fn text_width(&self, column: usize) -> usize {
        self.width.saturating_sub(column).max(20)
    }

    fn push_columns(&mut self, indent: usize, label: Span, column: usize, tone: Tone, lines: &[String]) {
        let mut at = indent + label.width();
        self.push(Tone::Plain, &" ".repeat(indent));
        self.push(label.tone, &label.text);
        // A label wider than its column gets a line of its own.
        if at + 1 > column || lines.is_empty() {
            self.text.push('\n');
            at = 0;
        }
        for line in lines {
            self.push(Tone::Plain, &" ".repeat(column - at));
            self.push(tone, line);
            self.text.push('\n');
            at = 0;
        }
    }

    /// Adds lines as they are (code, file content), escaped and indented; lines that are too long are wrapped.
    pub fn verbatim(&mut self, indent: usize, tone: Tone, text: &str) {
        for line in text.lines() {
            let line = escape_controls(line);
            let wrapped = if indent + display_width(&line) > self.width {
                wrap(&line, self.width - indent)
            } else {
                vec![line.into_owned()]
            };
            for line in wrapped {
                self.push(Tone::Plain, &" ".repeat(indent));
                self.push(tone, &line);
                self.text.push('\n');
            }
        }
    }

    /// Adds a diagnostic with an excerpt of the source. [`render_diagnostics`] escapes all text.
    pub fn diagnostic_with_excerpt(&mut self, diagnostic: &Diagnostic, source: &str) {
        let mut diagnostic = diagnostic.clone();
        diagnostic.path = self.short_path(&diagnostic.path).into();
        self.text
            .push_str(&render_diagnostics(&[diagnostic], source, true, self.width));
        self.text.push('\n');
    }

    fn push(&mut self, tone: Tone, escaped: &str) {
        let style = tone.style();
        self.text.push_str(&format!("{style}{escaped}{style:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(page: Page) -> String {
        anstream::adapter::strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn no_text_injects_an_escape_sequence() {
        let hostile = "x\u{1b}]0;owned\u{7}\u{1b}[2J";
        let mut page = Page::new(80, PathShortener::default());
        page.line(&[Span::plain(hostile)]);
        page.paragraph(2, Tone::Plain, hostile);
        page.labelled(2, Span::plain(hostile), 10, Tone::Dim, hostile);
        page.verbatim(0, Tone::Plain, hostile);
        page.heading(hostile);
        let text = plain(page);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert_eq!(text.matches("\\u{1b}[2J").count(), 6);
    }

    #[test]
    fn a_wide_label_gets_its_own_line() {
        let mut page = Page::new(40, PathShortener::default());
        page.labelled(
            2,
            Span::plain("short"),
            10,
            Tone::Plain,
            "some text that goes over the edge of it",
        );
        page.labelled(2, Span::plain("rather-long"), 10, Tone::Plain, "text");
        page.labelled(2, Span::plain("alone"), 10, Tone::Plain, "");
        assert_eq!(
            plain(page),
            "  short   some text that goes over the\n          edge of it\n  rather-long\n          text\n  alone\n"
        );
    }
}
