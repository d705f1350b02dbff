//! Progress on stderr for work that takes longer than people wait in silence.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Work that is quicker than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// A counter that the work moves and a line on the terminal shows.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Runs the work. When `watched`, a line appears after a second and vanishes with the work; otherwise no thread
    /// is started.
    pub fn during<T>(watched: bool, label: &'static str, work: impl FnOnce(&Self) -> T) -> T {
        let progress = Self::default();
        if !watched {
            return work(&progress);
        }
        std::thread::scope(|scope| {
            let (done, finished) = mpsc::channel::<()>();
            scope.spawn(|| progress.show(label, finished));
            let result = work(&progress);
            drop(done);
            result
        })
    }

    /// Says how many steps there are.
    pub fn expect(&self, steps: usize) {
        self.total.store(steps as u64, Ordering::Relaxed);
    }

    /// One step is done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn show(&self, label: &'static str, finished: mpsc::Receiver<()>) {
        if finished.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let bar = ProgressBar::new(0);
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(label);
        let mut counted = false;
        loop {
            let total = self.total.load(Ordering::Relaxed);
            if total > 0 && !counted {
                bar.set_style(style("{spinner} {msg} {wide_bar} {pos}/{len}"));
                counted = true;
            }
            bar.set_length(total);
            bar.set_position(self.done.load(Ordering::Relaxed));
            bar.tick();
            if finished.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
