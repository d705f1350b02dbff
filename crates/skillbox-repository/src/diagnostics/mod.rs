//! Diagnostics about skills: their codes, how they are built and how they are shown.

mod codes;
mod new_diagnostic;
mod render;
pub(crate) mod scan_diagnostics;

pub use codes::{ParseCode, ScanCode};
pub(crate) use new_diagnostic::{Hint, Position, new_diagnostic};
pub use render::render_diagnostics;
