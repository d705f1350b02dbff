//! Files over the wire: streamed both ways, in pieces, within limits.

mod download;
mod range;
mod upload;

pub(crate) use download::{FileAnswer, answer};
pub(crate) use upload::store;
