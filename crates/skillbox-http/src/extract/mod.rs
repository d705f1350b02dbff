//! Extracts typed values from requests; errors name the field.

mod json_body;
mod path_params;
mod query;

pub(crate) use json_body::{JsonBody, body_too_large, normalize_integers, read_json};
pub(crate) use path_params::PathParams;
pub(crate) use query::Query;
