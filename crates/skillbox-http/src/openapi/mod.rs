//! The OpenAPI document, generated from the table that serves the API and from its types.
//!
//! The types derive JSON Schema already, for the tools of models, and OpenAPI 3.1 uses JSON Schema. So one derive serves
//! both, without a second schema library.

mod api;
mod operation;
mod page;
mod schemas;

pub(crate) use api::{Api, Authentication, DescribedRoutes, document, html_page};
pub(crate) use operation::Operation;
pub(crate) use schemas::Schemas;
