//! How answers look: safe text, layout for a terminal's width, colour only where somebody sees it.

pub mod findings;
mod page;
mod places;
mod progress;
mod terminal;
mod visible;
mod wrap;

pub use page::{Page, Span, Tone};
pub use places::Places;
pub use progress::Progress;
pub use terminal::{Terminal, Verbosity, without_acting};
pub use visible::{one_line, visible, visible_path};
pub use wrap::{cut, display_width, plural, wrap};
