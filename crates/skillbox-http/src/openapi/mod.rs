//! The description of the API, made of the table that serves it and of the types that it speaks.
//!
//! The types say their JSON Schema already, for the tools of models; OpenAPI 3.1 takes exactly that. So there is one
//! derive, one truth, and no second library of schemas.

mod api;
mod operation;
mod page;
mod schemas;

pub(crate) use api::{Api, Described, Door, document, readable};
pub(crate) use operation::Operation;
pub(crate) use schemas::Schemas;
