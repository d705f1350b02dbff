//! Output for a terminal: escaped text, layout for its width, colour only where it is shown.

pub mod diagnostics;
mod escape;
mod page;
mod progress;
mod short_path;
mod terminal;
mod wrap;

pub use escape::escape_path;
pub use page::{Page, Span, Tone};
pub use progress::Progress;
pub use short_path::PathShortener;
pub use terminal::{Terminal, Verbosity, escape_json};
pub use wrap::{display_width, plural, wrap};
