//! The settings and options that commands share, resolved before a command starts.

use std::cell::Cell;
use std::path::Path;

use skillbox_sandbox::Spawner;

use crate::render::Verbosity;
use crate::settings::{GlobalSettings, Layers, ResolvedSetting, TrustSettings};

/// The settings and options of this invocation.
pub struct Context<'a> {
    /// The settings in force.
    pub settings: &'a GlobalSettings,
    /// Which skills may run, and how runs are recorded.
    pub trust: &'a TrustSettings,
    /// The global settings with their origins.
    pub resolved_settings: &'a [ResolvedSetting],
    /// Environment and config file.
    pub layers: &'a Layers,
    /// The config file that the command line names.
    pub config_path: Option<&'a Path>,
    /// Whether the output is JSON.
    pub as_json: bool,
    /// How much is printed on stderr.
    pub verbosity: Verbosity,
    /// The spawner of a run, if one was forked at program start.
    pub spawner: Cell<Option<Spawner>>,
    /// The declaration of the command line, for help, manual pages and completions.
    pub command_line: fn() -> clap::Command,
}
