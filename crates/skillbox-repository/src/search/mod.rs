//! Finds skills by words.

mod query;
mod ranking;
mod score;

pub use ranking::{SearchHit, SearchRank, search};
