//! Values out of requests: what is wrong is told as the error object, with the field.

mod json_body;
mod path_text;
mod query;

pub(crate) use json_body::{read_json, too_large, typed};
pub(crate) use path_text::PathText;
pub(crate) use query::Query;
