//! Prints diagnostics on stderr.

use std::io;

use skillbox_model::{Diagnostic, Severity};

use super::page::{Page, Span, Tone};
use super::plural::plural;
use super::terminal::{Terminal, Verbosity};

/// The number of diagnostics that a summary shows in full.
const SHOWN_IN_SUMMARY: usize = 3;

/// How diagnostics are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticsStyle {
    /// All that the verbosity asks for.
    Complete,
    /// On a terminal, their number by code and the first few; `-v` prints all. Otherwise complete.
    SummaryOnTerminal,
}

/// Prints the diagnostics that the verbosity asks for, and the number of omitted ones.
pub fn print_diagnostics(
    diagnostics: &[Diagnostic],
    style: DiagnosticsStyle,
    verbosity: Verbosity,
    terminal: &mut Terminal,
) -> io::Result<()> {
    let mut page = terminal.page();
    if terminal.are_both_terminals() && !diagnostics.is_empty() && verbosity > Verbosity::Quiet {
        page.line(&[]);
    }
    let is_printed = |diagnostic: &&Diagnostic| diagnostic.severity >= min_severity(verbosity);
    let printed: Vec<_> = diagnostics.iter().filter(is_printed).collect();
    let is_summary = style == DiagnosticsStyle::SummaryOnTerminal
        && verbosity == Verbosity::Normal
        && terminal.is_stderr_terminal()
        && printed.len() > SHOWN_IN_SUMMARY;
    let shown = if is_summary { SHOWN_IN_SUMMARY } else { printed.len() };
    for diagnostic in &printed[..shown] {
        page.blank_line();
        render_diagnostic(&mut page, diagnostic);
    }
    if is_summary {
        render_summary(&mut page, &printed);
    }
    let omitted = diagnostics.len() - printed.len();
    if omitted > 0 && verbosity == Verbosity::Normal {
        page.blank_line();
        page.line(&[Span::new(
            Tone::Dim,
            format!("{} not shown; use -v to see all", plural(omitted, "note")),
        )]);
    }
    terminal.print_message(page)
}

/// Renders the number of diagnostics by code, the most frequent first, and how to see all.
fn render_summary(page: &mut Page, diagnostics: &[&Diagnostic]) {
    let mut counts: Vec<(&str, Severity, usize)> = Vec::new();
    for diagnostic in diagnostics {
        match counts.iter_mut().find(|(code, ..)| *code == diagnostic.code) {
            Some((.., count)) => *count += 1,
            None => counts.push((diagnostic.code, diagnostic.severity, 1)),
        }
    }
    counts.sort_by(|(a, severity_a, count_a), (b, severity_b, count_b)| {
        let by_severity = severity_b.cmp(severity_a);
        by_severity.then(count_b.cmp(count_a)).then(a.cmp(b))
    });
    page.heading(&format!("{} in all, by code", plural(diagnostics.len(), "diagnostic")));
    for (code, severity, count) in counts {
        let (tone, word) = severity_label(severity);
        page.labelled(
            2,
            Span::new(tone, format!("{word}[{code}]")),
            40,
            Tone::Plain,
            &count.to_string(),
        );
    }
    page.blank_line();
    let shown = diagnostics.len().min(SHOWN_IN_SUMMARY);
    let note = format!("only the first {shown} are shown; use -v or --json to see all");
    page.line(&[Span::new(Tone::Dim, note)]);
}

fn min_severity(verbosity: Verbosity) -> Severity {
    match verbosity {
        Verbosity::Quiet => Severity::Error,
        Verbosity::Normal => Severity::Warning,
        Verbosity::Verbose => Severity::Info,
    }
}

/// Renders severity, code, position, message and hint.
fn render_diagnostic(page: &mut Page, diagnostic: &Diagnostic) {
    let (tone, word) = severity_label(diagnostic.severity);
    let mut position = page.short_path(&diagnostic.path);
    for number in [diagnostic.line, diagnostic.column].into_iter().flatten() {
        position.push_str(&format!(":{number}"));
    }
    page.line(&[
        Span::new(tone, format!("{word}[{}]", diagnostic.code)),
        Span::plain(" "),
        Span::plain(position),
    ]);
    page.paragraph(2, Tone::Plain, &diagnostic.message);
    if let Some(hint) = &diagnostic.hint {
        page.labelled(2, Span::new(Tone::Hint, "hint:"), 8, Tone::Plain, hint);
    }
}

fn severity_label(severity: Severity) -> (Tone, &'static str) {
    match severity {
        Severity::Error => (Tone::Bad, "error"),
        Severity::Warning => (Tone::Warning, "warning"),
        Severity::Info => (Tone::Dim, "note"),
    }
}
