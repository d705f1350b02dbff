//! Every setting.
//!
//! `state_dir` below is the flag `--state-dir`, the variable `SKILLBOX_STATE_DIR` and the config key `state_dir`: one
//! entry declares all three, with the type, which determines the parser, and the default. A group contains the settings
//! that the same commands accept; those commands flatten its flags.
//! `skillbox help settings --markdown` prints this table as a document.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use skillbox_artifacts::Location;
use skillbox_http::{Limits, TokenHash};
use skillbox_model::ExecutorKind;
use skillbox_runtime::{AtLimit, Dialect, HookRunner, LoadMode, PolicyKind};
use skillbox_sandbox::SpawnerOptions;

use super::declaration::{SettingDeclaration, SettingGroup};
use super::environment::Environment;
use super::layers::{Layers, ResolvedSetting, SettingError};
use super::log_level::LogLevel;
use super::tool_set::ToolSet;
use super::value::SettingValue;

macro_rules! settings {
    (
        $(#[doc = $group_doc:literal])*
        $flags:ident => $settings:ident, $title:literal, accepted by $commands:literal, help order from $first:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:ident: $kind:ty, $placeholder:literal, default $default:expr $(, documented as $documented:literal)?;
        )*
    ) => {
        /// The flags as written on the command line; [`Self::resolve`] merges them with the other layers.
        #[derive(clap::Args, Clone, Debug, Default)]
        pub struct $flags {
            $(
                $(#[doc = $doc])+
                #[arg(
                    long,
                    global = true,
                    value_name = $placeholder,
                    help_heading = "Settings",
                    display_order = Self::display_order(stringify!($name)),
                    action = <$kind as SettingValue>::flag_action(),
                    num_args = <$kind as SettingValue>::flag_value_count(),
                    default_missing_value = "true",
                    value_parser = clap::value_parser!(OsString),
                )]
                $name: Vec<OsString>,
            )*
        }

        $(#[doc = $group_doc])*
        #[derive(Clone, Debug)]
        pub struct $settings {
            $( $(#[doc = $doc])+ pub $name: $kind, )*
        }

        impl $flags {
            const GROUP: SettingGroup = SettingGroup {
                title: $title,
                accepted_by: $commands,
                settings: Self::DECLARATIONS,
            };

            const DECLARATIONS: &'static [SettingDeclaration] = &[
                $( SettingDeclaration {
                    key: stringify!($name),
                    placeholder: $placeholder,
                    description: concat!($($doc, " "),+),
                    separator: <$kind as SettingValue>::SEPARATOR,
                    type_name: <$kind as SettingValue>::type_name,
                    documented_default: [$(Some($documented),)? None][0],
                }, )*
            ];

            /// The position of a flag in the help: a group stays together, in the order of the table.
            fn display_order(key: &str) -> usize {
                $first + Self::DECLARATIONS.iter().take_while(|setting| setting.key != key).count()
            }

            /// Merges the layers, highest first, and records where each value came from.
            pub fn resolve(&self, layers: &Layers) -> Result<($settings, Vec<ResolvedSetting>), SettingError> {
                let mut resolved = Vec::new();
                let mut declarations = Self::DECLARATIONS.iter();
                let settings = $settings {
                    $( $name: {
                        let setting = declarations.next().expect("one declaration for each field");
                        layers.resolve(setting, &self.$name, &mut resolved, || $default(layers))?
                    }, )*
                };
                Ok((settings, resolved))
            }
        }
    };
}

settings! {
    /// Settings that every command accepts.
    GlobalFlags => GlobalSettings, "General", accepted by "every command", help order from 300;

    /// Directory of skills, or the directory of one skill; repeatable, a later one wins
    skills: Vec<PathBuf>, "PATH", default |_: &Layers| Vec::new(), documented as "the default skill directories";

    /// Directory of additional sandbox profiles
    profiles: Option<PathBuf>, "DIR", default |_: &Layers| None;

    /// Directory for sessions, artifacts, snapshots and caches
    state_dir: PathBuf, "DIR", default |layers: &Layers| layers.environment().default_state_dir(),
        documented as "`$XDG_STATE_HOME/skillbox`, else `~/.local/state/skillbox`";

    /// Artifact store: a directory, or a bucket as s3://, gs://, az:// or abfss:// URL with a prefix
    artifacts: Option<Location>, "WHERE", default |_: &Layers| None, documented as "`artifacts` in the state directory";

    /// Endpoint of the object store, if not the provider's own
    artifacts_endpoint: Option<String>, "URL", default |_: &Layers| None;

    /// Region of the bucket
    artifacts_region: Option<String>, "NAME", default |_: &Layers| None;

    /// Maximum number of directories that discovery scans
    max_directories: usize, "N", default |_: &Layers| 100_000;

    /// Log JSON lines to stderr: off, error, warn, info or debug
    log: LogLevel, "LEVEL", default |_: &Layers| LogLevel::Off;
}

settings! {
    /// What runs may do, and what they get by default.
    HostFlags => HostSettings, "Runs and sandbox",
        accepted by "`run`, `call`, `mcp`, `serve`, `docker build-runner` and `config show`", help order from 200;

    /// Where runs execute: local or docker
    executor: ExecutorKind, "KIND", default |_: &Layers| ExecutorKind::Local;

    /// Docker daemon: unix:///path or tcp://host:port
    docker_host: String, "ADDRESS", default |layers: &Layers| layers.environment().default_docker_host(),
        documented as "`$DOCKER_HOST`, else `unix:///var/run/docker.sock`";

    /// Image for runs in containers
    docker_image: String, "IMAGE", default |_: &Layers| DEFAULT_IMAGE.to_owned(),
        documented as "`skillbox-runner:VERSION`";

    /// Default sandbox profile
    profile: String, "NAME", default |_: &Layers| "default".to_owned();

    /// Allow only this profile; repeatable
    allow_profile: Vec<String>, "NAME", default |_: &Layers| Vec::new(), documented as "all but `unconfined`";

    /// Allow the profile `unconfined`, which isolates nothing
    allow_unconfined: bool, "BOOL", default |_: &Layers| false;

    /// Number of sandboxes prepared in advance for local runs; 0 prepares none
    slots: u8, "N", default |_: &Layers| SpawnerOptions::DEFAULT_SLOT_LIMIT;

    /// Allow host:// inputs below this directory; repeatable
    allow_host: Vec<PathBuf>, "DIR", default |_: &Layers| Vec::new();
}

settings! {
    /// What agents see of skills, and what they may do with them.
    AgentFlags => AgentSettings, "Agents",
        accepted by "`prompt`, `tools`, `call`, `mcp`, `serve` and `config show`", help order from 100;

    /// Tool names, parameters and texts: skillbox, trpc, deepagents, saa or agentskills
    dialect: Dialect, "NAME", default |_: &Layers| Dialect::default();

    /// Effect of `allowed-tools` in loaded skills: recommend, restrict or strict
    policy: PolicyKind, "KIND", default |_: &Layers| PolicyKind::default();

    /// Tool that no policy blocks; repeatable, replaces the default list, '' empties it
    always_allowed: ToolSet, "TOOL", default |_: &Layers| ToolSet::default_tools();

    /// Maximum characters of the skill list in a prompt
    budget: usize, "N", default |_: &Layers| 16_000;

    /// Maximum number of loaded skills
    max_loaded: usize, "N", default |_: &Layers| 10;

    /// Loading beyond the maximum: refuse, or evict the least recently used skill
    at_limit: AtLimit, "ACTION", default |_: &Layers| AtLimit::default();

    /// How long a skill stays loaded: session, turn or once
    load_mode: LoadMode, "MODE", default |_: &Layers| LoadMode::default();

    /// Refuse to run skills that are not loaded
    require_loaded: bool, "BOOL", default |_: &Layers| false;

    /// Commands in a skill's hooks: run them in the sandbox, or offer them to the host
    hooks: HookRunner, "ACTION", default |_: &Layers| HookRunner::default();
}

settings! {
    /// The HTTP server and its limits.
    ServeFlags => ServeSettings, "HTTP server", accepted by "`serve` and `config show`", help order from 150;

    /// Address of the HTTP API
    listen: SocketAddr, "ADDR", default |_: &Layers| SocketAddr::from(([127, 0, 0, 1], 8484));

    /// Accepted token as TENANT:sha256:HEX, printed by `skillbox serve token`; repeatable
    tokens: Vec<TokenHash>, "ENTRY", default |_: &Layers| Vec::new();

    /// Maximum concurrent runs and tool calls
    max_runs: usize, "N", default |_: &Layers| Limits::default().max_runs;

    /// Maximum runs and tool calls that wait in the queue
    max_queued: usize, "N", default |_: &Layers| Limits::default().max_queued;

    /// Maximum open connections
    max_connections: usize, "N", default |_: &Layers| Limits::default().max_connections;

    /// Maximum bytes of a JSON request body
    max_body: usize, "BYTES", default |_: &Layers| Limits::default().max_body_bytes;

    /// Maximum bytes of an uploaded file
    max_upload: usize, "BYTES", default |_: &Layers| 1 << 30;

    /// Seconds a client may take to send the head of a request
    head_time: usize, "SECONDS", default |_: &Layers| 30;

    /// Seconds that runs may continue after a signal, before they are killed
    grace: usize, "SECONDS", default |_: &Layers| 10;

    /// Seconds without use after which a session is removed
    session_idle: usize, "SECONDS", default |_: &Layers| 7 * 24 * 3600;

    /// OTLP collector for spans: http://host:4318
    otlp_endpoint: Option<String>, "URL", default |_: &Layers| None;
}

/// The image for this version of skillbox; each version needs its own image.
const DEFAULT_IMAGE: &str = concat!("skillbox-runner:", env!("CARGO_PKG_VERSION"));

impl GlobalFlags {
    /// The flags that may be given more than once.
    pub fn repeatable() -> impl Iterator<Item = String> {
        let lists = Self::DECLARATIONS.iter().filter(|setting| setting.separator.is_some());
        lists.map(SettingDeclaration::flag)
    }
}

/// Every group, in the order of the reference.
pub fn all_groups() -> [&'static SettingGroup; 4] {
    [
        &GlobalFlags::GROUP,
        &HostFlags::GROUP,
        &AgentFlags::GROUP,
        &ServeFlags::GROUP,
    ]
}

/// Reads the layers below the flags: the environment, and the config file at `config_path` or else the default one.
pub fn read_layers(environment: Environment, config_path: Option<&Path>) -> Result<Layers, SettingError> {
    Layers::read(environment, config_path, all_keys())
}

fn all_keys() -> Vec<&'static str> {
    all_groups()
        .iter()
        .flat_map(|group| group.settings)
        .map(|setting| setting.key)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique() {
        let keys: std::collections::BTreeSet<_> = all_keys().into_iter().collect();
        assert_eq!(keys.len(), all_keys().len());
    }
}
