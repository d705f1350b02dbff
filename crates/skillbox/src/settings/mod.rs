//! Settings, resolved once: flags over environment over config file over defaults.
//!
//! A setting is declared in `table.rs` and nowhere else. Its flag, its variable and its key follow from its name.

mod choice;
mod config_file;
mod declaration;
mod environment;
mod layers;
mod log_level;
mod server_values;
mod suggestion;
mod table;
mod tool_set;
mod value;

pub use declaration::SettingGroup;
pub use environment::Environment;
pub use layers::{Layers, ResolvedSetting, SettingError};
pub use log_level::LogLevel;
pub use table::{
    AgentFlags, AgentSettings, GlobalFlags, GlobalSettings, HostFlags, HostSettings, ServeFlags, ServeSettings,
    all_groups, read_layers,
};
