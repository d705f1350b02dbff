//! Settings, resolved once: flags over environment over config file over defaults.
//!
//! A setting is declared in `table.rs` and nowhere else; its flag, its variable and its key follow from its name.

mod choice;
mod config_file;
mod environment;
mod layers;
mod table;
mod tool_set;
mod value;
mod who_may_come;

pub use environment::Environment;
pub use layers::{Layers, SettingError, Told};
pub use table::{
    AgentFlags, AgentSettings, GlobalFlags, GlobalSettings, HostFlags, HostSettings, ServeFlags, ServeSettings,
};
