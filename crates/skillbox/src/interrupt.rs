//! Ctrl-C and a polite kill: the run is cancelled, and its end is still told.

use skillbox_executor::Cancel;

/// Throws the switch at the first SIGINT or SIGTERM; a second one ends us the usual way.
pub fn cancel_on_signal(cancel: &Cancel) {
    let cancel = cancel.clone();
    // Without the handler, a signal ends us at once, and the sandbox dies with us.
    let _default_stays = ctrlc::set_handler(move || cancel.cancel());
}
