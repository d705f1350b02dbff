//! Shows progress on stderr for work that takes more than a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter work shows no progress.
const SHOW_DELAY: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The number of completed steps, which the work advances and a progress line shows.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Runs the work. If `is_visible`, a thread shows a progress line after a second and removes it at the end.
    pub fn show_during<T>(is_visible: bool, label: &'static str, work: impl FnOnce(&Self) -> T) -> T {
        let progress = Self::default();
        if !is_visible {
            return work(&progress);
        }
        std::thread::scope(|scope| {
            let (work_running, work_finished) = mpsc::channel::<()>();
            scope.spawn(|| progress.draw(label, work_finished));
            let result = work(&progress);
            drop(work_running);
            result
        })
    }

    /// Sets the number of steps.
    pub fn set_total(&self, steps: usize) {
        self.total.store(steps as u64, Ordering::Relaxed);
    }

    /// Counts one completed step.
    pub fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn draw(&self, label: &'static str, work_finished: mpsc::Receiver<()>) {
        if work_finished.recv_timeout(SHOW_DELAY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let bar = ProgressBar::new(0);
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(label);
        let mut has_bar = false;
        loop {
            let total = self.total.load(Ordering::Relaxed);
            if total > 0 && !has_bar {
                bar.set_style(style("{spinner} {msg} {wide_bar} {pos}/{len}"));
                has_bar = true;
            }
            bar.set_length(total);
            bar.set_position(self.done.load(Ordering::Relaxed));
            bar.tick();
            if work_finished.recv_timeout(REDRAW_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
