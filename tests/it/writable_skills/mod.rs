//! Skills that write beside themselves: scripts change a private view of their skill, which ends with the run.

mod collected;
mod kept;
mod public_style;
