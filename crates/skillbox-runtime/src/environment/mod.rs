//! What decides about the packages of a run: the host's settings, and the script that its command names.

mod command_script;
mod error;
mod settings;

pub(crate) use command_script::{CommandScript, command_script};
pub use error::EnvironmentError;
pub use settings::{EnvironmentMode, EnvironmentSettings, RegistrySources};
