//! The line on stderr for a run without isolation, or with less isolation than its profile prefers.
//!
//! It is printed with `--json` and `--quiet` too: stdout stays data, and a weaker sandbox is never silent.

use std::io;

use serde_json::Value;
use skillbox_model::Enforcement;

use crate::render::{Span, Terminal, Tone};

/// The text for one run.
pub const RUN: &str = "this run is UNCONFINED: its script can read and change everything that you can";
/// The text for a program that runs what its callers ask for.
pub const CALLERS: &str = "callers may use the profile `unconfined` (allow_unconfined): such a script is not isolated, and can \
    read and change everything that this user can";

/// Warns that runs without isolation are allowed, before any of them starts.
pub fn print_if_unconfined(is_unconfined: bool, text: &str, terminal: &mut Terminal) -> io::Result<()> {
    if is_unconfined { print(text, terminal) } else { Ok(()) }
}

/// Warns about a run that had less isolation than this version of skillbox can give: one line, with what is missing.
pub fn print_if_weaker(enforcement: &Enforcement, terminal: &mut Terminal) -> io::Result<()> {
    match enforcement.shortfall() {
        // Where warnings are logged, standard error has JSON lines.
        Some(shortfall) if tracing::enabled!(tracing::Level::WARN) => {
            tracing::warn!("{shortfall}");
            Ok(())
        }
        // One line, which the terminal wraps: programs that read standard error find it whole.
        Some(shortfall) => {
            let mut page = terminal.page();
            page.line(&[Span::new(Tone::Bad, "WARNING: "), Span::plain(shortfall)]);
            terminal.print_message(page)
        }
        None => Ok(()),
    }
}

/// Warns about the run of a tool call, whose result is JSON.
pub fn print_if_result_is_weaker(result: &Value, terminal: &mut Terminal) -> io::Result<()> {
    let enforcement = result.get("enforcement").cloned().unwrap_or_default();
    match serde_json::from_value(enforcement) {
        Ok(enforcement) => print_if_weaker(&enforcement, terminal),
        Err(_) => Ok(()),
    }
}

fn print(text: &str, terminal: &mut Terminal) -> io::Result<()> {
    let mut page = terminal.page();
    page.labelled(0, Span::new(Tone::Bad, "WARNING:"), 9, Tone::Plain, text);
    terminal.print_message(page)
}
