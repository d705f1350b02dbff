//! Findings about files, told on stderr.

use std::io;

use skillbox_model::{Diagnostic, Severity};

use super::{Page, Span, Terminal, Tone, Verbosity};

/// Tells what is loud enough, and how much was kept back.
pub fn tell(findings: &[Diagnostic], verbosity: Verbosity, terminal: &mut Terminal) -> io::Result<()> {
    let loud = |finding: &&Diagnostic| finding.severity >= threshold(verbosity);
    let mut page = terminal.page();
    if terminal.is_one_screen() && !findings.is_empty() && verbosity > Verbosity::Quiet {
        page.line(&[]);
    }
    for finding in findings.iter().filter(loud) {
        page.gap();
        one(&mut page, finding);
    }
    let kept_back = findings.len() - findings.iter().filter(loud).count();
    if kept_back > 0 && verbosity == Verbosity::Normal {
        page.gap();
        let noun = if kept_back == 1 { "piece" } else { "pieces" };
        page.line(&[Span::new(
            Tone::Dim,
            format!("{kept_back} {noun} of advice not shown; -v tells"),
        )]);
    }
    terminal.tell(page)
}

fn threshold(verbosity: Verbosity) -> Severity {
    match verbosity {
        Verbosity::Quiet => Severity::Error,
        Verbosity::Normal => Severity::Warning,
        Verbosity::Verbose => Severity::Info,
    }
}

/// One finding: severity and code, place, what, and what to do.
pub fn one(page: &mut Page, finding: &Diagnostic) {
    let (tone, word) = severity(finding.severity);
    let mut place = page.short(&finding.path);
    for number in [finding.line, finding.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    page.line(&[
        Span::new(tone, format!("{word}[{}]", finding.code)),
        Span::plain(" "),
        Span::plain(place),
    ]);
    page.paragraph(2, Tone::Plain, &finding.message);
    if let Some(hint) = &finding.hint {
        page.beside(2, Span::new(Tone::Hint, "hint:"), 8, Tone::Plain, hint);
    }
}

fn severity(severity: Severity) -> (Tone, &'static str) {
    match severity {
        Severity::Error => (Tone::Bad, "error"),
        Severity::Warning => (Tone::Warning, "warning"),
        Severity::Info => (Tone::Dim, "advice"),
    }
}
