//! Every setting there is.
//!
//! `state_dir` below is the flag `--state-dir`, the variable `SKILLBOX_STATE_DIR` and the config key `state_dir`:
//! one line declares all three, its type says how it is read, and its default closes the row. A new setting is a
//! new line; settings that only some commands take are a new group, whose flags those commands flatten.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use skillbox_artifacts::Location;
use skillbox_http::{Limits, TokenHash};
use skillbox_model::ExecutorKind;
use skillbox_runtime::{AtLimit, CommandHooks, Dialect, LoadMode, PolicyKind};
use skillbox_sandbox::SpawnerOptions;

use super::layers::{Declared, Layers, SettingError, Told};
use super::tool_set::ToolSet;
use super::value::SettingValue;
use crate::log_lines::LogLevel;

macro_rules! settings {
    (
        $(#[doc = $group_doc:literal])*
        $flags:ident => $settings:ident, shown from $first:literal;
        $( $(#[doc = $doc:literal])+ $name:ident: $kind:ty, $placeholder:literal, default $default:expr; )*
    ) => {
        /// The flags as they were written; [`Self::resolve`] merges them with the other layers.
        #[derive(clap::Args, Clone, Debug, Default)]
        pub struct $flags {
            $(
                $(#[doc = $doc])+
                #[arg(
                    long,
                    global = true,
                    value_name = $placeholder,
                    help_heading = "Settings",
                    display_order = Self::place(stringify!($name)),
                    action = <$kind as SettingValue>::action(),
                    num_args = <$kind as SettingValue>::words(),
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
            const DECLARED: &'static [Declared] = &[
                $( Declared {
                    key: stringify!($name),
                    placeholder: $placeholder,
                    about: concat!($($doc, " "),+),
                    separator: <$kind as SettingValue>::SEPARATOR,
                }, )*
            ];

            /// Where the help shows a flag: those of a group stand together, in the order of the table.
            fn place(key: &str) -> usize {
                $first + Self::DECLARED.iter().take_while(|setting| setting.key != key).count()
            }

            /// Merges the layers, highest first, and says where each value came from.
            pub fn resolve(&self, layers: &Layers) -> Result<($settings, Vec<Told>), SettingError> {
                let mut told = Vec::new();
                let mut declared = Self::DECLARED.iter();
                let settings = $settings {
                    $( $name: {
                        let setting = declared.next().expect("one declaration for each field");
                        layers.pick(setting, &self.$name, &mut told, || $default(layers))?
                    }, )*
                };
                Ok((settings, told))
            }
        }
    };
}

settings! {
    /// Settings that every command takes.
    GlobalFlags => GlobalSettings, shown from 300;

    /// A directory of skills, or one skill's own directory; may be repeated, the last wins
    skills: Vec<PathBuf>, "PATH", default |_: &Layers| Vec::new();

    /// A directory of sandbox profiles
    profiles: Option<PathBuf>, "DIR", default |_: &Layers| None;

    /// Where state is kept between runs
    state_dir: PathBuf, "DIR", default |layers: &Layers| layers.environment().default_state_dir();

    /// Where artifacts are kept: a directory, or s3://, gs://, az:// or abfss:// with bucket and prefix
    artifacts: Option<Location>, "WHERE", default |_: &Layers| None;

    /// Where an object store is spoken to, if not at its provider's
    artifacts_endpoint: Option<String>, "URL", default |_: &Layers| None;

    /// The region of the artifacts' bucket
    artifacts_region: Option<String>, "NAME", default |_: &Layers| None;

    /// Give up discovery after this many directories
    max_directories: usize, "N", default |_: &Layers| 100_000;

    /// Write a log to stderr, as JSON lines: off, error, warn, info or debug
    log: LogLevel, "LEVEL", default |_: &Layers| LogLevel::Off;
}

settings! {
    /// What the host allows runs to do, and what they get where a request says nothing.
    HostFlags => HostSettings, shown from 200;

    /// Where runs take place: local or docker
    executor: ExecutorKind, "KIND", default |_: &Layers| ExecutorKind::Local;

    /// The Docker daemon: unix:///path or tcp://host:port
    docker_host: String, "ADDRESS", default |layers: &Layers| layers.environment().default_docker_host();

    /// The image of runs in containers
    docker_image: String, "IMAGE", default |_: &Layers| DEFAULT_IMAGE.to_owned();

    /// The sandbox profile of runs
    profile: String, "NAME", default |_: &Layers| "default".to_owned();

    /// Only these profiles may be used; may be repeated
    allow_profile: Vec<String>, "NAME", default |_: &Layers| Vec::new();

    /// Allow the profile that isolates nothing
    allow_unconfined: bool, "BOOL", default |_: &Layers| false;

    /// How many sandboxes may wait, made ahead, for local runs to come; 0 makes each when it is asked for
    slots: u8, "N", default |_: &Layers| SpawnerOptions::DEFAULT_SLOTS;

    /// Let host:// inputs come from below this directory; may be repeated
    allow_host: Vec<PathBuf>, "DIR", default |_: &Layers| Vec::new();
}

settings! {
    /// What agents are shown of skills, and what they may do with them.
    AgentFlags => AgentSettings, shown from 100;

    /// Names, parameters and texts: skillbox, trpc, deepagents, saa or agentskills
    dialect: Dialect, "NAME", default |_: &Layers| Dialect::default();

    /// What `allowed-tools` of loaded skills means: recommend, restrict or strict
    policy: PolicyKind, "KIND", default |_: &Layers| PolicyKind::default();

    /// Tools that no policy blocks, in place of the customary ones; may be repeated, '' means none
    always_allowed: ToolSet, "TOOL", default |_: &Layers| ToolSet::customary();

    /// Characters that the list of skills may take in a prompt
    budget: usize, "N", default |_: &Layers| 16_000;

    /// How many skills may be loaded at once
    max_loaded: usize, "N", default |_: &Layers| 10;

    /// What happens to one more: refuse it, or evict the one not used for longest
    at_limit: AtLimit, "WHAT", default |_: &Layers| AtLimit::default();

    /// How long a loaded skill stays: session, turn or once
    load_mode: LoadMode, "MODE", default |_: &Layers| LoadMode::default();

    /// Refuse to run skills that are not loaded
    require_loaded: bool, "BOOL", default |_: &Layers| false;

    /// Commands of skills' hooks: run them in the sandbox, or offer them to the host
    hooks: CommandHooks, "WHAT", default |_: &Layers| CommandHooks::default();
}

settings! {
    /// How the HTTP server serves, and what it takes on.
    ServeFlags => ServeSettings, shown from 150;

    /// The address of the HTTP API
    listen: SocketAddr, "ADDR", default |_: &Layers| SocketAddr::from(([127, 0, 0, 1], 8484));

    /// Who may come in: TENANT:sha256:HEX, as `skillbox serve token` prints it; may be repeated
    tokens: Vec<TokenHash>, "LINE", default |_: &Layers| Vec::new();

    /// So many runs and tool calls at once
    max_runs: usize, "N", default |_: &Layers| Limits::default().runs;

    /// So many more wait for their turn
    max_queued: usize, "N", default |_: &Layers| Limits::default().queued;

    /// So many open connections
    max_connections: usize, "N", default |_: &Layers| Limits::default().connections;

    /// Bytes of a request's JSON
    max_body: usize, "BYTES", default |_: &Layers| Limits::default().body;

    /// Bytes of an uploaded file
    max_upload: usize, "BYTES", default |_: &Layers| 1 << 30;

    /// Seconds that a client may take to send the head of a request
    head_time: usize, "SECONDS", default |_: &Layers| 30;

    /// Seconds that runs may go on after a signal; then they are killed
    grace: usize, "SECONDS", default |_: &Layers| 10;

    /// Seconds without use after which a session is removed
    session_idle: usize, "SECONDS", default |_: &Layers| 7 * 24 * 3600;

    /// Send spans to this collector, by OTLP: http://host:4318
    otlp_endpoint: Option<String>, "URL", default |_: &Layers| None;
}

/// Another version of skillbox is another image.
const DEFAULT_IMAGE: &str = concat!("skillbox-runner:", env!("CARGO_PKG_VERSION"));

impl GlobalFlags {
    /// The flags that may stand more than once.
    pub fn repeatable() -> impl Iterator<Item = String> {
        let listed = Self::DECLARED.iter().filter(|setting| setting.separator.is_some());
        listed.map(Declared::flag)
    }
}

/// Every declaration of every group: what a config file may say.
pub(super) fn all() -> impl Iterator<Item = &'static Declared> {
    GlobalFlags::DECLARED
        .iter()
        .chain(HostFlags::DECLARED)
        .chain(AgentFlags::DECLARED)
        .chain(ServeFlags::DECLARED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique() {
        let keys: std::collections::BTreeSet<_> = all().map(|setting| setting.key).collect();
        assert_eq!(keys.len(), all().count());
    }
}
