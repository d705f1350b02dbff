//! Settings, resolved once: flags over environment over config files over defaults.
//!
//! A setting is declared in `table.rs` and nowhere else. Its flag, its variable and its key follow from its name.

mod choice;
mod config_file;
mod declaration;
mod environment;
mod host_memory;
mod layers;
mod log_level;
mod project_rule;
mod secret_section;
mod server_values;
mod suggestion;
mod table;
mod tool_set;
mod trust_values;
mod trusted_files;
mod value;

pub use declaration::SettingGroup;
pub use environment::Environment;
pub use layers::{Layers, Origin, ResolvedSetting, SettingError, UntrustedSetting};
pub use log_level::LogLevel;
pub use secret_section::SecretSource;
pub use table::{
    AgentFlags, AgentSettings, GlobalFlags, GlobalSettings, HostFlags, HostSettings, ServeFlags, ServeSettings,
    TrustFlags, TrustSettings, all_groups, read_layers,
};
pub use trusted_files::{TrustedFile, TrustedFiles};
