//! Cancels the run on SIGINT, SIGTERM and SIGHUP; its result is still reported.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use skillbox_executor::CancelToken;

/// Cancels at the first SIGINT, SIGTERM or SIGHUP. A second signal has its default effect.
pub fn cancel_on_signal(cancel: &CancelToken) {
    let was_signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // If a handler cannot be installed, the signal keeps its default effect: it ends this process and the sandbox.
        let _default_remains = install_handler(signal, cancel, &was_signalled);
    }
}

/// All work happens in the signal handler: a thread that waits for signals would cost every run its start and join.
fn install_handler(signal: i32, cancel: &CancelToken, was_signalled: &Arc<AtomicBool>) -> io::Result<()> {
    let trigger_fd = cancel.trigger_fd()?;
    // Actions run in the order of their registration: the second signal sees the flag set by the first.
    flag::register_conditional_default(signal, Arc::clone(was_signalled))?;
    flag::register(signal, Arc::clone(was_signalled))?;
    low_level::pipe::register(signal, trigger_fd)?;
    Ok(())
}
