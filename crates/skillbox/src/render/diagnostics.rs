//! Prints diagnostics on stderr.

use std::io;

use skillbox_model::{Diagnostic, Severity};

use super::page::{Page, Span, Tone};
use super::plural::plural;
use super::terminal::{Terminal, Verbosity};

/// Prints the diagnostics that the verbosity asks for, and the number of omitted ones.
pub fn print_diagnostics(diagnostics: &[Diagnostic], verbosity: Verbosity, terminal: &mut Terminal) -> io::Result<()> {
    let is_printed = |diagnostic: &&Diagnostic| diagnostic.severity >= min_severity(verbosity);
    let mut page = terminal.page();
    if terminal.are_both_terminals() && !diagnostics.is_empty() && verbosity > Verbosity::Quiet {
        page.line(&[]);
    }
    for diagnostic in diagnostics.iter().filter(is_printed) {
        page.blank_line();
        render_diagnostic(&mut page, diagnostic);
    }
    let omitted = diagnostics.len() - diagnostics.iter().filter(is_printed).count();
    if omitted > 0 && verbosity == Verbosity::Normal {
        page.blank_line();
        page.line(&[Span::new(
            Tone::Dim,
            format!("{} not shown; use -v to see all", plural(omitted, "note")),
        )]);
    }
    terminal.print_message(page)
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
