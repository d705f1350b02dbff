//! Ctrl-C and a polite kill: the run is cancelled, and its end is still told.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use skillbox_executor::Cancel;

/// Throws the switch at the first SIGINT, SIGTERM or SIGHUP; a second one ends us the usual way.
pub fn cancel_on_signal(cancel: &Cancel) {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without the handler, a signal ends us at once, and the sandbox dies with us.
        let _default_stays = throw_at(signal, cancel, &seen);
    }
}

/// Everything happens in the handler itself: a thread that waits for signals would have to be started and ended with
/// every run.
fn throw_at(signal: i32, cancel: &Cancel, seen: &Arc<AtomicBool>) -> io::Result<()> {
    let trigger = cancel.trigger()?;
    // Actions are taken in the order of their registration: the second signal finds the flag of the first.
    flag::register_conditional_default(signal, Arc::clone(seen))?;
    flag::register(signal, Arc::clone(seen))?;
    low_level::pipe::register(signal, trigger)?;
    Ok(())
}
