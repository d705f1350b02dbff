//! The summary of a batch for people: counts, the failed and the slowest jobs, and how to run what is left.

use std::path::Path;

use skillbox_batch::{BatchName, HaltReason, Summary};

use crate::render::{Page, Span, Tone, plural};

/// The number of failed jobs that are shown; `failed.txt` has all.
const SHOWN_FAILURES: usize = 10;
/// Durations below this are not worth a list.
const MIN_SLOW_MS: u64 = 100;

/// Where the results of a batch are.
pub enum ResultPlace<'a> {
    /// In a directory of this host.
    Directory(&'a Path),
    /// In the artifact store, under the name of the batch.
    Store(&'a BatchName),
}

/// Renders the summary.
pub fn render(summary: &Summary, place: &ResultPlace<'_>, page: &mut Page) {
    if let Some(reason) = &summary.halted {
        page.labelled(
            0,
            Span::new(Tone::Bad, "halted:"),
            8,
            Tone::Plain,
            &describe_halt(reason),
        );
    }
    render_counts(summary, page);
    render_failures(summary, place, page);
    let slow: Vec<_> = summary
        .slowest
        .iter()
        .filter(|job| job.duration_ms >= MIN_SLOW_MS)
        .collect();
    if !slow.is_empty() {
        page.heading("Slowest");
        for job in slow {
            let duration = format!("{} ms", job.duration_ms);
            page.labelled(2, Span::plain(duration), 14, Tone::Plain, job.id.as_str());
        }
    }
    page.blank_line();
    let results = match place {
        ResultPlace::Directory(out) => out.join("results.jsonl").display().to_string(),
        ResultPlace::Store(name) => format!("skillbox batch results {name} --json"),
    };
    page.labelled(0, Span::new(Tone::Dim, "results:"), 9, Tone::Plain, &results);
    if summary.not_run > 0 {
        let text = format!(
            "run the other {} with the same command and --resume",
            plural(summary.not_run, "job")
        );
        page.labelled(0, Span::new(Tone::Hint, "hint:"), 9, Tone::Plain, &text);
    }
    if summary.failed > 0 {
        let text = "run the failed jobs again with the same command and --resume-failed";
        page.labelled(0, Span::new(Tone::Hint, "hint:"), 9, Tone::Plain, text);
    }
}

/// One line, such as `480 ok, 20 failed of 500 jobs in 12.3 s (40.6/s)`.
pub fn render_counts(summary: &Summary, page: &mut Page) {
    let mut spans = vec![Span::new(Tone::Good, format!("{} ok", summary.ok))];
    let failed_tone = if summary.failed > 0 { Tone::Bad } else { Tone::Plain };
    spans.push(Span::plain(", "));
    spans.push(Span::new(failed_tone, format!("{} failed", summary.failed)));
    if summary.not_run > 0 {
        spans.push(Span::plain(", "));
        spans.push(Span::new(Tone::Warning, format!("{} not run", summary.not_run)));
    }
    let mut text = format!(" of {}", plural(summary.jobs, "job"));
    if summary.executed > 0 {
        let seconds = summary.duration_ms as f64 / 1e3;
        let rate = summary.executed as f64 / seconds.max(0.001);
        text.push_str(&format!("; {} run in {seconds:.1} s ({rate:.1}/s)", summary.executed));
    }
    if summary.resumed > 0 {
        text.push_str(&format!(", {} had results", summary.resumed));
    }
    if summary.retries > 0 {
        text.push_str(&format!(", {} again", plural(summary.retries, "attempt")));
    }
    spans.push(Span::plain(text));
    page.line(&spans);
}

fn render_failures(summary: &Summary, place: &ResultPlace<'_>, page: &mut Page) {
    if summary.failed == 0 {
        return;
    }
    page.heading("Failed");
    let shown = summary.failed_jobs.iter().take(SHOWN_FAILURES);
    let width = shown
        .clone()
        .map(|job| job.id.as_str().len())
        .max()
        .unwrap_or_default()
        .min(32);
    for job in shown {
        page.labelled(
            2,
            Span::new(Tone::Name, job.id.as_str()),
            width + 4,
            Tone::Plain,
            &job.reason,
        );
    }
    if summary.failed > SHOWN_FAILURES {
        let all = match place {
            ResultPlace::Directory(out) => out.join("failed.txt").display().to_string(),
            ResultPlace::Store(name) => format!("skillbox batch results {name} --failed"),
        };
        let text = format!("and {} more in {all}", summary.failed - SHOWN_FAILURES);
        page.paragraph(2, Tone::Dim, &text);
    }
}

/// Why a batch stopped, in a sentence.
fn describe_halt(reason: &HaltReason) -> String {
    match reason {
        HaltReason::Failures { failed } => format!("halted after {failed} failed jobs (--halt)"),
        HaltReason::Interrupted => "halted by a signal".to_owned(),
        HaltReason::Storage { message } => format!("halted: {message}"),
        HaltReason::ExecutorLost => "halted: the process that creates sandboxes ended".to_owned(),
        HaltReason::Cancelled => "halted: the batch was cancelled".to_owned(),
    }
}
