//! What a person is told after a run, beside what the script itself wrote.

use skillbox_model::{ByteSize, EndedBy, LayerState, RunReport};

use crate::render::{Page, Span, Terminal, Tone, Verbosity, plural};

/// Tells how it ended, where that was not a plain success, and what came back: what was `asked` for, or what there is.
pub fn tell_summary(
    report: &RunReport,
    asked: bool,
    verbosity: Verbosity,
    terminal: &mut Terminal,
) -> std::io::Result<()> {
    let mut page = terminal.page();
    end(report, &mut page);
    if verbosity > Verbosity::Quiet {
        files(report, asked, &mut page);
        for warning in &report.warnings {
            page.beside(0, Span::new(Tone::Warning, "warning:"), 9, Tone::Plain, warning);
        }
    }
    if verbosity == Verbosity::Verbose {
        facts(report, &mut page);
    }
    terminal.tell(page)
}

fn end(report: &RunReport, page: &mut Page) {
    let text = match report.ended_by {
        EndedBy::Exit => return,
        EndedBy::Timeout => format!(
            "the deadline passed after {} ms; everything was killed",
            report.duration_ms
        ),
        EndedBy::Memory => "the memory limit was hit".to_owned(),
        EndedBy::Cpu => "the CPU time was used up".to_owned(),
        EndedBy::Pids => "the limit of processes was hit".to_owned(),
        EndedBy::Disk => "the workspace, or a file in it, reached its limit".to_owned(),
        EndedBy::Output => "too much output".to_owned(),
        EndedBy::Cancelled => "cancelled".to_owned(),
        EndedBy::Signal => format!("by signal {}", report.signal.unwrap_or_default()),
    };
    page.line(&[Span::new(Tone::Bad, "ended: "), Span::plain(text)]);
}

fn files(report: &RunReport, asked: bool, page: &mut Page) {
    let column = 9;
    for file in &report.output_files {
        let size = ByteSize(file.size_bytes);
        let label = if asked { "output:" } else { "in out/:" };
        let text = format!("{} ({}, {size})", file.name, file.mime_type);
        page.beside(0, Span::new(Tone::Dim, label), column, Tone::Plain, &text);
    }
    for artifact in &report.artifact_files {
        page.beside(
            0,
            Span::new(Tone::Good, "saved:"),
            column,
            Tone::Plain,
            &artifact.reference,
        );
    }
    for refused in &report.refused_outputs {
        let text = format!("{}: {}", refused.name, refused.reason);
        page.beside(0, Span::new(Tone::Warning, "refused:"), column, Tone::Plain, &text);
    }
}

fn facts(report: &RunReport, page: &mut Page) {
    let enforced = report
        .enforcement
        .layers
        .values()
        .filter(|state| **state == LayerState::Enforced)
        .count();
    let memory = report
        .usage
        .peak_memory_bytes
        .map_or_else(String::new, |bytes| format!(", {} at most", ByteSize(bytes)));
    let text = format!(
        "{} in {} ms, {} ms of CPU{memory}; {} enforced, tier {:?}, profile {}",
        report.run_id,
        report.duration_ms,
        report.usage.cpu_ms,
        plural(enforced, "layer"),
        report.enforcement.tier,
        report.profile
    );
    page.beside(0, Span::new(Tone::Dim, "run:"), 9, Tone::Dim, &text);
}
