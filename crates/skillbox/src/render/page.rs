//! A page of human output under construction.
//!
//! Callers give text and its tone; the page makes every text visible and is the only place that writes escape
//! sequences, so that no skill's text can smuggle one in.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use skillbox_model::Diagnostic;
use skillbox_repository::render as render_excerpts;

use super::{Places, cut, display_width, one_line, visible, wrap};

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// A heading.
    Heading,
    /// The name of a thing.
    Name,
    /// Side information.
    Dim,
    /// Success.
    Good,
    /// Something to look at.
    Warning,
    /// Something failed.
    Bad,
    /// What to do next.
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

/// A piece of one line.
#[derive(Clone, Debug)]
pub struct Span {
    tone: Tone,
    text: String,
}

impl Span {
    /// A text in a tone; control characters become visible.
    pub fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self {
            tone,
            text: visible(text.as_ref()).into_owned(),
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
    places: Places,
}

impl Page {
    /// An empty page for a terminal of that many columns.
    pub fn new(width: usize, places: Places) -> Self {
        Self {
            text: String::new(),
            width: width.clamp(40, 100),
            places,
        }
    }

    /// A path as people know it.
    pub fn short(&self, path: &Path) -> String {
        self.places.short(path)
    }

    /// The finished text, with escape sequences for its tones.
    pub fn into_text(self) -> String {
        self.text
    }

    /// An empty line, unless the page is empty or one stands there already.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A heading, set apart from what stands above.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.line(&[Span::new(Tone::Heading, text)]);
    }

    /// One line as given; too long a line is the terminal's to break.
    pub fn line(&mut self, spans: &[Span]) {
        if let Some((last, before)) = spans.split_last() {
            for span in before {
                self.push(span.tone, &span.text);
            }
            self.push(last.tone, last.text.trim_end());
        }
        self.text.push('\n');
    }

    /// A paragraph, flattened and wrapped, each line after `indent` blanks.
    pub fn paragraph(&mut self, indent: usize, tone: Tone, text: &str) {
        for line in wrap(&one_line(text), self.width - indent) {
            self.push(Tone::Plain, &" ".repeat(indent));
            self.push(tone, &line);
            self.text.push('\n');
        }
    }

    /// A label in a column of its own, and the whole text wrapped beside it.
    pub fn beside(&mut self, indent: usize, label: Span, column: usize, tone: Tone, text: &str) {
        let lines = wrap(&one_line(text), self.room(column));
        self.columns(indent, label, column, tone, &lines);
    }

    /// The same with at most `limit` lines of text; what is cut ends in an ellipsis.
    pub fn summary(&mut self, indent: usize, label: Span, column: usize, limit: usize, text: &str) {
        let mut lines = wrap(&one_line(text), self.room(column));
        if lines.len() > limit {
            lines.truncate(limit);
            if let Some(last) = lines.last_mut() {
                *last = cut(last, self.room(column));
            }
        }
        self.columns(indent, label, column, Tone::Plain, &lines);
    }

    fn room(&self, column: usize) -> usize {
        self.width.saturating_sub(column).max(20)
    }

    fn columns(&mut self, indent: usize, label: Span, column: usize, tone: Tone, lines: &[String]) {
        let mut at = indent + label.width();
        self.push(Tone::Plain, &" ".repeat(indent));
        self.push(label.tone, &label.text);
        // A label that is wider than its column has its line to itself.
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

    /// Lines that stay as they are (code, file content), each made visible and indented; too long a line is folded.
    pub fn verbatim(&mut self, indent: usize, tone: Tone, text: &str) {
        for line in text.lines() {
            let line = visible(line);
            let folded = if indent + display_width(&line) > self.width {
                wrap(&line, self.width - indent)
            } else {
                vec![line.into_owned()]
            };
            for line in folded {
                self.push(Tone::Plain, &" ".repeat(indent));
                self.push(tone, &line);
                self.text.push('\n');
            }
        }
    }

    /// A finding with the line it is about. The renderer makes every text visible itself.
    pub fn excerpt(&mut self, finding: &Diagnostic, source: &str) {
        let mut finding = finding.clone();
        finding.path = self.short(&finding.path).into();
        self.text
            .push_str(&render_excerpts(&[finding], source, true, self.width));
        self.text.push('\n');
    }

    fn push(&mut self, tone: Tone, shown: &str) {
        let style = tone.style();
        self.text.push_str(&format!("{style}{shown}{style:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(page: Page) -> String {
        anstream::adapter::strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn no_text_smuggles_an_escape_sequence() {
        let evil = "x\u{1b}]0;owned\u{7}\u{1b}[2J";
        let mut page = Page::new(80, Places::default());
        page.line(&[Span::plain(evil)]);
        page.paragraph(2, Tone::Plain, evil);
        page.beside(2, Span::plain(evil), 10, Tone::Dim, evil);
        page.verbatim(0, Tone::Plain, evil);
        page.heading(evil);
        let text = plain(page);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert_eq!(text.matches("\\u{1b}[2J").count(), 6);
    }

    #[test]
    fn a_wide_label_gets_its_own_line() {
        let mut page = Page::new(40, Places::default());
        page.beside(
            2,
            Span::plain("short"),
            10,
            Tone::Plain,
            "some text that goes over the edge of it",
        );
        page.beside(2, Span::plain("rather-long"), 10, Tone::Plain, "text");
        page.beside(2, Span::plain("alone"), 10, Tone::Plain, "");
        assert_eq!(
            plain(page),
            "  short   some text that goes over the\n          edge of it\n  rather-long\n          text\n  alone\n"
        );
    }
}
