//! The summary printed for people after a run, next to the output of the script.

use std::collections::BTreeMap;
use std::time::Duration;

use skillbox_model::{ByteSize, EndedBy, LayerState, RunReport};

use crate::render::{Page, Span, Terminal, Tone, Verbosity, plural};

/// The number of refused files of one reason that are named.
const MAX_NAMED_REFUSALS: usize = 3;

/// The number of output files that are named.
const MAX_NAMED_OUTPUTS: usize = 20;
/// The number of refused files that a report names.
const MAX_COUNTED_REFUSALS: usize = 100;

/// How a summary is printed.
pub struct SummaryStyle {
    /// Whether the caller asked for output files.
    pub has_requested_outputs: bool,
    /// The exit code of this process.
    pub exit_code: u8,
    /// How much is printed.
    pub verbosity: Verbosity,
}

/// Prints why the run ended, unless it exited, its output files, warnings and the hint. On a terminal, the last line
/// summarises the run.
pub fn print_summary(report: &RunReport, style: &SummaryStyle, terminal: &mut Terminal) -> std::io::Result<()> {
    let mut page = terminal.page();
    render_end_reason(report, &mut page);
    if style.verbosity > Verbosity::Quiet {
        render_files(report, style.has_requested_outputs, &mut page);
        // A missing package is a warning too, for programs that read only the warnings. A shortfall of isolation is printed
        // already, whatever the verbosity.
        let shortfall = report.enforcement.shortfall();
        let is_printed_elsewhere =
            |warning: &&String| Some(*warning) == report.hint.as_ref() || Some(*warning) == shortfall.as_ref();
        for warning in report.warnings.iter().filter(|warning| !is_printed_elsewhere(warning)) {
            page.labelled(0, Span::new(Tone::Warning, "warning:"), 9, Tone::Plain, warning);
        }
        if let Some(hint) = &report.hint {
            page.labelled(0, Span::new(Tone::Hint, "hint:"), 9, Tone::Plain, hint);
        }
    }
    if style.has_requested_outputs && !report.refused_outputs.is_empty() {
        render_refusal(report, style.exit_code, &mut page);
    }
    if style.verbosity == Verbosity::Verbose {
        render_statistics(report, &mut page);
    } else if style.verbosity > Verbosity::Quiet && terminal.is_stderr_terminal() {
        page.line(&[Span::new(Tone::Dim, summary_line(report, style.exit_code))]);
    }
    terminal.print_message(page)
}

/// The run in one line.
fn summary_line(report: &RunReport, exit_code: u8) -> String {
    let mut parts = vec![format!("exit {exit_code}")];
    parts.push(format!(
        "{:.2} s",
        Duration::from_millis(report.duration_ms).as_secs_f64()
    ));
    if !report.output_files.is_empty() {
        let bytes = report.output_files.iter().map(|file| file.size_bytes).sum();
        let files = plural(report.output_files.len(), "file");
        parts.push(format!("{files}, {}", ByteSize(bytes)));
    }
    parts.push(format!("tier {:?}", report.enforcement.tier));
    parts.join(" · ")
}

/// The error for output files that were asked for and not collected.
fn render_refusal(report: &RunReport, exit_code: u8, page: &mut Page) {
    let text = format!(
        "{} not collected, so skillbox exits with {exit_code}",
        match report.refused_outputs.len() {
            1 => "1 output was".to_owned(),
            // The report names the first hundred.
            count if count >= MAX_COUNTED_REFUSALS => format!("{count} or more outputs were"),
            count => format!("{count} outputs were"),
        }
    );
    page.labelled(0, Span::new(Tone::Bad, "error:"), 9, Tone::Plain, &text);
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
    for file in report.output_files.iter().take(MAX_NAMED_OUTPUTS) {
        let size = ByteSize(file.size_bytes);
        let label = if has_requested_outputs { "output:" } else { "in out/:" };
        let text = format!("{} ({}, {size})", file.name, file.mime_type);
        page.labelled(0, Span::new(Tone::Dim, label), column, Tone::Plain, &text);
    }
    if report.output_files.len() > MAX_NAMED_OUTPUTS {
        let text = format!("and {} more", report.output_files.len() - MAX_NAMED_OUTPUTS);
        page.labelled(0, Span::new(Tone::Dim, "output:"), column, Tone::Dim, &text);
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
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for refused in &report.refused_outputs {
        by_reason.entry(&refused.reason).or_default().push(&refused.name);
    }
    for (reason, names) in by_reason {
        for name in names.iter().take(MAX_NAMED_REFUSALS) {
            let text = format!("{name}: {reason}");
            page.labelled(0, Span::new(Tone::Warning, "refused:"), column, Tone::Plain, &text);
        }
        if names.len() > MAX_NAMED_REFUSALS {
            let text = format!("and {} more: {reason}", names.len() - MAX_NAMED_REFUSALS);
            page.labelled(0, Span::new(Tone::Warning, "refused:"), column, Tone::Plain, &text);
        }
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
