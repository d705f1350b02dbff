//! The OpenAPI document, generated from the table that serves the API and from its types.
//!
//! OpenAPI 3.1 uses JSON Schema, which the types already derive for tool definitions, so no second schema library is
//! needed.

mod document;
mod operation;
mod operation_id;
mod page;
mod portable;
mod route_builder;
mod schemas;

pub(crate) use document::{Authentication, openapi_document};
pub(crate) use operation::Operation;
pub(crate) use page::render_page;
pub(crate) use route_builder::{DescribedRoutes, RouteBuilder};
pub(crate) use schemas::Schemas;
