//! The summary printed for people after a run, next to the output of the script.

use skillbox_model::{ByteSize, EndedBy, LayerState, RunReport};

use crate::render::{Page, Span, Terminal, Tone, Verbosity, plural};

/// Prints why the run ended, unless it exited, and its output files.
pub fn print_summary(
    report: &RunReport,
    has_requested_outputs: bool,
    verbosity: Verbosity,
    terminal: &mut Terminal,
) -> std::io::Result<()> {
    let mut page = terminal.page();
    render_end_reason(report, &mut page);
    if verbosity > Verbosity::Quiet {
        render_files(report, has_requested_outputs, &mut page);
        for warning in &report.warnings {
            page.labelled(0, Span::new(Tone::Warning, "warning:"), 9, Tone::Plain, warning);
        }
    }
    if verbosity == Verbosity::Verbose {
        render_statistics(report, &mut page);
    }
    terminal.print_message(page)
}

fn render_end_reason(report: &RunReport, page: &mut Page) {
    let text = match report.ended_by {
        EndedBy::Exit => return,
        EndedBy::Timeout => format!("timed out after {} ms", report.duration_ms),
        EndedBy::Memory => "memory limit reached".to_owned(),
        EndedBy::Cpu => "CPU time limit reached".to_owned(),
        EndedBy::Pids => "process limit reached".to_owned(),
        EndedBy::Disk => "size limit of the workspace or a file reached".to_owned(),
        EndedBy::Output => "output limit reached".to_owned(),
        EndedBy::Cancelled => "cancelled".to_owned(),
        EndedBy::Signal => format!("by signal {}", report.signal.unwrap_or_default()),
    };
    page.line(&[Span::new(Tone::Bad, "ended: "), Span::plain(text)]);
}

fn render_files(report: &RunReport, has_requested_outputs: bool, page: &mut Page) {
    let column = 9;
    for file in &report.output_files {
        let size = ByteSize(file.size_bytes);
        let label = if has_requested_outputs { "output:" } else { "in out/:" };
        let text = format!("{} ({}, {size})", file.name, file.mime_type);
        page.labelled(0, Span::new(Tone::Dim, label), column, Tone::Plain, &text);
    }
    for artifact in &report.artifact_files {
        page.labelled(
            0,
            Span::new(Tone::Good, "saved:"),
            column,
            Tone::Plain,
            &artifact.reference,
        );
    }
    for refused in &report.refused_outputs {
        let text = format!("{}: {}", refused.name, refused.reason);
        page.labelled(0, Span::new(Tone::Warning, "refused:"), column, Tone::Plain, &text);
    }
}

fn render_statistics(report: &RunReport, page: &mut Page) {
    let enforced = report
        .enforcement
        .layers
        .values()
        .filter(|state| **state == LayerState::Enforced)
        .count();
    let memory = report
        .usage
        .peak_memory_bytes
        .map_or_else(String::new, |bytes| format!(", peak memory {}", ByteSize(bytes)));
    let text = format!(
        "{} took {} ms, {} ms CPU{memory}; {} enforced, tier {:?}, profile {}",
        report.run_id,
        report.duration_ms,
        report.usage.cpu_ms,
        plural(enforced, "layer"),
        report.enforcement.tier,
        report.profile
    );
    page.labelled(0, Span::new(Tone::Dim, "run:"), 9, Tone::Dim, &text);
}
