//! `skillbox approve`.

mod command;
mod listed_files;
mod oddities;
mod review;
mod text_diff;

pub use command::{ApproveArgs, run};
