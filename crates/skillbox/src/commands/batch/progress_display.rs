//! Shows how far a batch is: a bar on a terminal, otherwise a line every ten seconds.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use skillbox_batch::Progress;
use skillbox_model::ErrorCode;

use crate::failure::Failure;
use crate::render::{Span, Terminal, Verbosity};

const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the work on another thread and shows its progress on stderr until it ends.
pub fn show_during<T: Send>(
    progress: &Progress,
    verbosity: Verbosity,
    terminal: &mut Terminal,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| Failure::from_error(ErrorCode::Internal, &error);
    std::thread::scope(|scope| {
        let (running, finished) = mpsc::channel::<()>();
        let worker = std::thread::Builder::new()
            .name("batch".to_owned())
            .spawn_scoped(scope, move || {
                let result = work();
                drop(running);
                result
            })
            .map_err(failed)?;
        if verbosity == Verbosity::Quiet {
            // Nothing is shown; joining waits.
        } else if terminal.is_stderr_terminal() {
            draw_bar(progress, &finished);
        } else {
            print_lines(progress, &finished, terminal)?;
        }
        worker
            .join()
            .map_err(|_| Failure::new(ErrorCode::Internal, "a thread of the batch panicked"))
    })
}

fn draw_bar(progress: &Progress, finished: &mpsc::Receiver<()>) {
    let begin = Instant::now();
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    while finished.recv_timeout(REDRAW_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let counts = Counts::of(progress, begin.elapsed());
        if counts.total == 0 {
            continue;
        }
        bar.set_length(counts.total as u64);
        bar.set_position(counts.done() as u64);
        bar.set_message(counts.to_text());
    }
    bar.finish_and_clear();
}

fn print_lines(progress: &Progress, finished: &mpsc::Receiver<()>, terminal: &mut Terminal) -> Result<(), Failure> {
    let begin = Instant::now();
    while finished.recv_timeout(LINE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let counts = Counts::of(progress, begin.elapsed());
        let mut page = terminal.page();
        let text = format!("{}/{} jobs: {}", counts.done(), counts.total, counts.to_text());
        page.line(&[Span::plain(text)]);
        terminal.print_message(page)?;
    }
    Ok(())
}

/// The counters at one time.
struct Counts {
    total: usize,
    resumed: usize,
    ok: usize,
    failed: usize,
    running: usize,
    elapsed: Duration,
}

impl Counts {
    fn of(progress: &Progress, elapsed: Duration) -> Self {
        Self {
            total: progress.total(),
            resumed: progress.resumed(),
            ok: progress.ok(),
            failed: progress.failed(),
            running: progress.running(),
            elapsed,
        }
    }

    fn done(&self) -> usize {
        self.resumed + self.ok + self.failed
    }

    /// Failed, running, rate and time left.
    fn to_text(&self) -> String {
        let rate = (self.ok + self.failed) as f64 / self.elapsed.as_secs_f64().max(0.001);
        let left = self.total.saturating_sub(self.done());
        let time_left = if rate > 0.0 {
            format!("{} left", clock(Duration::from_secs_f64((left as f64 / rate).min(1e9))))
        } else {
            "…".to_owned()
        };
        format!(
            "{} failed, {} running, {rate:.1}/s, {time_left}",
            self.failed, self.running
        )
    }
}

/// A duration as minutes and seconds, or hours and minutes.
fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let counts = Counts {
            total: 1_000,
            resumed: 100,
            ok: 280,
            failed: 20,
            running: 2,
            elapsed: Duration::from_secs(10),
        };
        assert_eq!(counts.done(), 400);
        assert_eq!(counts.to_text(), "20 failed, 2 running, 30.0/s, 0:20 left");
        assert_eq!(clock(Duration::from_secs(7_384)), "2 h 03 min");
        assert!(
            Counts {
                ok: 0,
                failed: 0,
                ..counts
            }
            .to_text()
            .ends_with('…')
        );
    }
}
