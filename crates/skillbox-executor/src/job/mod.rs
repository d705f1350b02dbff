//! The request, parsed: every text of it becomes a type here, before anything is created.

mod command;
mod data_url;
mod destination;
mod environment;
mod input_ref;
mod output_globs;
mod request_error;
mod spec;
mod variables;

pub use command::Invocation;
pub use data_url::DataUrl;
pub(crate) use environment::base as base_environment;
pub use input_ref::InputRef;
pub use output_globs::OutputGlobs;
pub use request_error::RequestError;
pub use spec::{Collecting, Excess, JobInput, JobSpec, ProfileBounds};
