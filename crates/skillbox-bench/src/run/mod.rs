//! `run`: the cost of a fully isolated run, compared with a bare spawn, bubblewrap and other sandboxes.

mod command;
mod sequence;
mod skill_directory;
mod stages;

pub(crate) use command::{Arguments, measure};
