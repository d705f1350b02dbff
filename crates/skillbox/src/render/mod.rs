//! Output for a terminal: escapes text, fits it to the width, and uses colour only where the output supports it.

mod date;
pub mod diagnostics;
mod escape;
mod page;
mod plural;
mod progress;
mod short_path;
mod terminal;
mod wrap;

pub use date::format_date;
pub use escape::escape_path;
pub use page::{Page, Span, Tone};
pub use plural::plural;
pub use progress::Progress;
pub use short_path::PathShortener;
pub use terminal::{Terminal, Verbosity, escape_json};
pub use wrap::{display_width, wrap};
