//! Shows on the terminal that a silent run goes on: a spinner with the elapsed time, after a second without output.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter silence shows nothing.
const SILENCE: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The spinner of one run. All output of the run goes through [`Self::write`], so that the two never mix.
pub struct RunSpinner {
    state: Option<Arc<Mutex<SpinnerState>>>,
}

struct SpinnerState {
    started: Instant,
    last_output: Instant,
    /// Whether the cursor is at the start of a line. Elsewhere, a spinner would overwrite the output of the script.
    is_at_line_start: bool,
    bar: Option<ProgressBar>,
}

impl RunSpinner {
    /// Does the work with a spinner, if standard error is a terminal.
    pub fn show_during<T>(is_visible: bool, work: impl FnOnce(&Self) -> T) -> T {
        if !is_visible {
            return work(&Self { state: None });
        }
        let now = Instant::now();
        let state = Arc::new(Mutex::new(SpinnerState {
            started: now,
            last_output: now,
            is_at_line_start: true,
            bar: None,
        }));
        std::thread::scope(|scope| {
            let (work_running, work_finished) = mpsc::channel::<()>();
            let drawn = state.clone();
            scope.spawn(move || {
                while work_finished.recv_timeout(REDRAW_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    lock(&drawn).draw();
                }
                lock(&drawn).clear();
            });
            let result = work(&Self { state: Some(state) });
            drop(work_running);
            result
        })
    }

    /// Writes output of the script, after the spinner is removed.
    pub fn write(&self, bytes: &[u8], write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Some(state) = &self.state else { return write() };
        let mut state = lock(state);
        state.clear();
        state.last_output = Instant::now();
        state.is_at_line_start = bytes.last().is_none_or(|byte| *byte == b'\n');
        write()
    }
}

impl SpinnerState {
    fn draw(&mut self) {
        if !self.is_at_line_start || self.last_output.elapsed() < SILENCE {
            return;
        }
        let started = self.started;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner().with_elapsed(started.elapsed());
            let style = ProgressStyle::with_template("{spinner} running {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        bar.tick();
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn lock(state: &Mutex<SpinnerState>) -> MutexGuard<'_, SpinnerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
