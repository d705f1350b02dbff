//! Renders diagnostics for a terminal, each with the source line it refers to.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use skillbox_model::{Diagnostic, Severity};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// The maximum number of underlined characters: the position matters, not the length.
const MAX_UNDERLINED_CHARS: usize = 48;

/// Renders diagnostics about one file as annotated excerpts of its text, separated by blank lines.
///
/// Path, message and hint may contain any characters. Characters that would move the cursor, color the terminal or
/// reorder the line are escaped. Lines are wrapped at `width` columns, but only between words.
pub fn render_diagnostics(diagnostics: &[Diagnostic], source: &str, color: bool, width: usize) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(width.max(40));
    let blocks: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| render_one(diagnostic, source, &renderer, width.max(40)))
        .collect();
    blocks.join("\n\n")
}

fn render_one(diagnostic: &Diagnostic, source: &str, renderer: &Renderer, width: usize) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let path = escape(&diagnostic.path.to_string_lossy());
    // The level and the code precede the message: `warning[code]: `.
    let prefix_width = diagnostic.code.len() + 12;
    let title = level
        .primary_title(wrap(&escape(&diagnostic.message), width, prefix_width))
        .id(diagnostic.code);
    let excerpt = diagnostic
        .line
        .and_then(|line| Excerpt::new(source, line, diagnostic.column.unwrap_or(1), width));
    let mut group = match &excerpt {
        Some(excerpt) => title.element(
            Snippet::source(excerpt.text.as_str())
                .line_start(excerpt.line)
                .path(path)
                .annotation(AnnotationKind::Primary.span(excerpt.underline.clone())),
        ),
        None => title.element(Origin::path(path)),
    };
    if let Some(hint) = &diagnostic.hint {
        // The margin and `= help: ` precede the hint.
        group = group.element(Level::HELP.message(wrap(&escape(hint), width, 14)));
    }
    renderer.render(&[group])
}

/// One source line, truncated to what a terminal can show, with the byte range to underline.
struct Excerpt {
    line: usize,
    text: String,
    underline: std::ops::Range<usize>,
}

impl Excerpt {
    fn new(source: &str, line: u32, column: u32, width: usize) -> Option<Self> {
        let line = usize::try_from(line).ok()?;
        let column = usize::try_from(column).ok()?.saturating_sub(1);
        let text = nth_line(source, line.checked_sub(1)?)?;
        let first = column.saturating_sub(width);
        let mut shown = String::new();
        let mut underline_start = None;
        let mut end = 0;
        for (at, c) in text.chars().enumerate().skip(first).take(3 * width) {
            if at == column {
                underline_start = Some(shown.len());
            }
            escape_into(c, &mut shown);
            if at < column + MAX_UNDERLINED_CHARS && c != ' ' {
                end = shown.len();
            }
        }
        let start = underline_start.unwrap_or(shown.len());
        Some(Self {
            line,
            underline: start..end.max(start),
            text: shown,
        })
    }
}

/// Returns a line by its zero-based index. Lines end with LF, CR LF or CR.
fn nth_line(source: &str, index: usize) -> Option<&str> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut rest = source;
    for _ in 0..index {
        let at = rest.find(['\n', '\r'])?;
        let is_pair = rest[at..].starts_with("\r\n");
        rest = &rest[at + if is_pair { 2 } else { 1 }..];
    }
    rest.split(['\n', '\r']).next()
}

/// Escapes everything in a text that could act on a terminal.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| escape_into(c, &mut out));
    out
}

/// Escapes control characters, format characters (including bidirectional marks) and line separators.
fn escape_into(c: char, out: &mut String) {
    use GeneralCategory as G;
    match c.general_category() {
        // Joiners are harmless, and emoji and some scripts need them.
        _ if matches!(c, '\u{200c}' | '\u{200d}') => out.push(c),
        G::Control | G::Format | G::LineSeparator | G::ParagraphSeparator | G::PrivateUse | G::Unassigned => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        }
        _ => out.push(c),
    }
}

/// Wraps a text between words so that every line fits into `width` minus `prefix_width` columns.
fn wrap(text: &str, width: usize, prefix_width: usize) -> String {
    let width = width.saturating_sub(prefix_width).max(20);
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if !out.is_empty() {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse_lenient;

    fn render_parsed(text: &str, width: usize) -> String {
        let parsed = parse_lenient(Path::new("skills/pdf/SKILL.md"), "pdf", text.as_bytes());
        render_diagnostics(&parsed.diagnostics, text, false, width)
    }

    #[test]
    fn diagnostics_are_shown_with_their_line() {
        let text = "---\nname: My_Pdf\ndescription: Use when: reading\n---\n";
        let shown = render_parsed(text, 80);
        for part in [
            "warning[unquoted_value]",
            "--> skills/pdf/SKILL.md:3:14",
            "3 | description: Use when: reading",
            "|              ^^^^^^^^^^^^^^^^^",
            "help: write description: 'Use when: reading'",
            "warning[name_breaks_rules]",
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
    }

    #[test]
    fn hostile_text_is_escaped() {
        let text = "---\nname: \"x\\e]0;t\\a\"\ndescription: a\u{202e}b: c\u{2066}\n---\n";
        for width in [0, 80, 10_000] {
            let shown = render_parsed(text, width);
            assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
            assert!(!shown.contains(['\u{202e}', '\u{2066}']), "{shown:?}");
            assert!(shown.contains("\\u{202e}"), "{shown}");
        }
    }

    #[test]
    fn long_lines_are_truncated_to_the_width() {
        let text = format!("---\nname: pdf\ndescription: {}\n---\n", "word ".repeat(100_000));
        let shown = render_parsed(&text, 80);
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        assert!(shown.len() < 2_000, "{}", shown.len());
    }

    #[test]
    fn a_line_number_outside_the_text_has_no_excerpt() {
        let parsed = parse_lenient(Path::new("SKILL.md"), "", b"x");
        let mut diagnostic = parsed.diagnostics[0].clone();
        diagnostic.line = Some(99);
        let shown = render_diagnostics(&[diagnostic], "x", false, 80);
        assert!(shown.contains("SKILL.md"), "{shown}");
    }
}
