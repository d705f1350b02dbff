//! Parses a request: every text becomes a type before anything is created.

mod data_url;
mod destination;
mod environment;
mod input_ref;
mod invocation;
mod output_globs;
mod request_caps;
mod request_error;
mod spec;
mod variables;

pub use data_url::DataUrl;
pub(crate) use environment::base_environment;
pub use input_ref::InputRef;
pub use invocation::Invocation;
pub use output_globs::OutputGlobs;
pub use request_caps::RequestCaps;
pub use request_error::RequestError;
pub use spec::{CollectionSpec, ExcessFileReporting, JobInput, JobSpec, ProfileBounds};
