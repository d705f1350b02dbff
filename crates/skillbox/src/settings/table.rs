//! Every setting.
//!
//! `state_dir` below is the flag `--state-dir`, the variable `SKILLBOX_STATE_DIR` and the config key `state_dir`: one
//! entry declares all three, with the type, which determines the parser, and the default. A group contains the settings
//! that the same commands accept; those commands flatten its flags.
//! `skillbox help settings --markdown` prints this table as a document.
//!
//! The config file of the working directory is untrusted: it may not set anything, unless the entry says `project file`
//! with one of the [`ProjectRule`]s.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use skillbox_artifacts::{Endpoint, Location};
use skillbox_executor::FixedAddress;
use skillbox_executor::job::RequestCaps;
use skillbox_executor::snapshot::SnapshotRetention;
use skillbox_http::{Limits, ListenAddress, TokenHash};
use skillbox_model::{ExecutorKind, HostPort, PublisherName};
use skillbox_repository::SkillLimits;
use skillbox_runtime::{
    AgentOptions, AtLimit, Dialect, EnvironmentMode, HookRunner, Inheritance, LoadMode, PolicyKind, SkillDirKeep,
};
use skillbox_sandbox::{SkillDirAccess, SpawnerOptions};
use skillbox_trust::{AuditMode, DenyEntry, LOCK_FILE_NAME, TrustMode};

use crate::forward_target::ForwardTarget;

use super::declaration::{SettingDeclaration, SettingGroup};
use super::environment::Environment;
use super::host_memory;
use super::layers::{Layers, ResolvedSetting, SettingError, UntrustedSetting};
use super::log_level::LogLevel;
use super::project_rule::ProjectRule;
use super::tool_set::ToolSet;
use super::trust_values::PublisherKey;
use super::value::SettingValue;

macro_rules! settings {
    (
        $(#[doc = $group_doc:literal])*
        $flags:ident => $settings:ident, $title:literal, accepted by $commands:literal, help order from $first:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:ident: $kind:ty, $placeholder:literal, default $default:expr
                $(, documented as $documented:literal)? $(, project file $rule:ident)?;
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
                    description: concat!($($doc),+),
                    separator: <$kind as SettingValue>::SEPARATOR,
                    type_name: <$kind as SettingValue>::type_name,
                    project_file: [$(ProjectRule::<$kind>::$rule,)? ProjectRule::<$kind>::NeedsTrust][0].word(),
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
                        let rule = [$(ProjectRule::<$kind>::$rule,)? ProjectRule::<$kind>::NeedsTrust];
                        layers.resolve(setting, &self.$name, &rule[0], &mut resolved, || $default(layers))?
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
    skills: Vec<PathBuf>, "PATH", default |_: &Layers| Vec::new(), documented as "the default skill directories", project file Any;

    /// Directory of additional sandbox profiles
    profiles: Option<PathBuf>, "DIR", default |_: &Layers| None;

    /// Directory for sessions, artifacts, snapshots and caches
    state_dir: PathBuf, "DIR", default |layers: &Layers| layers.environment().default_state_dir(),
        documented as "`$XDG_STATE_HOME/skillbox`, else `~/.local/state/skillbox`, else `/var/lib/skillbox`";

    /// Artifact store: a directory, or a bucket as s3://, gs://, az:// or abfss:// URL with a prefix
    artifacts: Option<Location>, "WHERE", default |_: &Layers| None, documented as "`artifacts` in the state directory";

    /// Endpoint of the object store, if not the provider's own
    artifacts_endpoint: Option<Endpoint>, "URL", default |_: &Layers| None;

    /// Region of the bucket
    artifacts_region: Option<String>, "NAME", default |_: &Layers| None;

    /// Maximum number of directories that discovery scans
    max_directories: usize, "N", default |_: &Layers| 100_000, project file AT_MOST;

    /// Maximum number of files and directories of a skill
    max_skill_files: usize, "N", default |_: &Layers| SkillLimits::default().files, project file AT_MOST;

    /// Maximum bytes of all files of a skill
    max_skill_bytes: usize, "BYTES", default |_: &Layers| SkillLimits::default().bytes as usize, project file AT_MOST;

    /// Maximum bytes of one file of a skill
    max_skill_file_bytes: usize, "BYTES", default |_: &Layers| SkillLimits::default().file_bytes as usize,
        project file AT_MOST;

    /// Load skills without a name or a description: take the name of the directory, and the first paragraph
    metadata_fallback: bool, "BOOL", default |_: &Layers| false, project file Any;

    /// Log JSON lines to stderr: off, error, warn, info or debug
    log: LogLevel, "LEVEL", default |_: &Layers| LogLevel::Off, project file Any;
}

settings! {
    /// What runs may do, and what they get by default.
    HostFlags => HostSettings, "Runs and sandbox",
        accepted by "`run`, `call`, `mcp`, `serve`, `env`, `profiles`, `docker build-runner` and `config show`", help order from 200;

    /// Where runs execute: local or docker
    executor: ExecutorKind, "KIND", default |_: &Layers| ExecutorKind::Local;

    /// Docker daemon: unix:///path or tcp://host:port
    docker_host: String, "ADDRESS", default |layers: &Layers| layers.environment().default_docker_host(),
        documented as "`$DOCKER_HOST`, else `unix:///var/run/docker.sock`";

    /// Mount the directories of SKILLS_ROOT read-only in containers
    mount_skills_root: bool, "BOOL", default |_: &Layers| false;

    /// Image for runs in containers
    docker_image: String, "IMAGE", default |_: &Layers| DEFAULT_IMAGE.to_owned(),
        documented as "`skillbox-runner:VERSION`";

    /// Default sandbox profile
    profile: String, "NAME", default |_: &Layers| "default".to_owned();

    /// Allow only this profile; repeatable
    allow_profile: Vec<String>, "NAME", default |_: &Layers| Vec::new(), documented as "all but `unconfined`";

    /// Allow the profile `unconfined`, which isolates nothing
    allow_unconfined: bool, "BOOL", default |_: &Layers| false;

    /// Skill directory of a run: cow (a private copy-on-write view, where the profile lets scripts change it) or read_only
    skill_dir: SkillDirAccess, "ACCESS", default |_: &Layers| SkillDirAccess::Cow;

    /// How long changes to the skill directory stay: run, or session (only with trust = open)
    skill_dir_keep: SkillDirKeep, "HOW_LONG", default |_: &Layers| SkillDirKeep::default();

    /// Number of sandboxes prepared in advance for local runs; 0 prepares none
    slots: u8, "N", default |_: &Layers| SpawnerOptions::DEFAULT_MAX_PARKED, project file AT_MOST;

    /// Allow host:// inputs below this directory; repeatable
    allow_host: Vec<PathBuf>, "DIR", default |_: &Layers| Vec::new();

    /// Allow runs to reach this host: HOST, HOST:PORT or *.HOST, port 443 by default; repeatable
    allow_net: Vec<HostPort>, "HOST[:PORT]", default |_: &Layers| Vec::new();

    /// Use this address for an allowed host instead of asking the name servers; repeatable
    host_address: Vec<FixedAddress>, "NAME=ADDRESS", default |_: &Layers| Vec::new();

    /// PEM file with additional trusted certificate authorities, for runs and for connections that skillbox makes for them
    tls_roots: Option<PathBuf>, "FILE", default |_: &Layers| None;

    /// When the packages that skills declare are installed: auto (by the first run), prebuilt (by `env build`) or off
    environments: Option<EnvironmentMode>, "WHEN", default |_: &Layers| None, documented as "`auto`; `prebuilt` in servers";

    /// Host that the installation of packages may reach besides the registries of pip and npm; repeatable
    package_hosts: Vec<HostPort>, "HOST[:PORT]", default |_: &Layers| Vec::new();

    /// Maximum number of inputs of a run
    max_inputs: usize, "N", default |_: &Layers| RequestCaps::default().inputs;

    /// Maximum number of files that a run may return or save
    max_output_files: usize, "N", default |_: &Layers| RequestCaps::default().files as usize;

    /// Maximum bytes of file content in the result of a run
    max_inline: usize, "BYTES", default |_: &Layers| host_memory::default_inline_bytes(),
        documented as "a sixteenth of the default of `max_buffered`, at most 16 MiB";

    /// Maximum bytes of all files that a run returns or saves
    max_collected: usize, "BYTES", default |_: &Layers| RequestCaps::default().collected_bytes as usize;

    /// Maximum bytes of the artifacts of each tenant on the local disk
    max_artifact_bytes: usize, "BYTES", default |_: &Layers| 64 << 30;

    /// Remove the frozen copy of a skill that did not run for this many days
    snapshot_days: usize, "DAYS", default |_: &Layers| 30;

    /// Maximum bytes of the frozen copies of skills; the longest unused are removed first
    max_snapshot_bytes: usize, "BYTES", default |_: &Layers| SnapshotRetention::default().max_bytes.bytes() as usize;
}

settings! {
    /// Which skills may run, and how runs are recorded.
    TrustFlags => TrustSettings, "Trust and records",
        accepted by "`run`, `call`, `mcp`, `serve`, `approve`, `approvals`, `lock`, `sign`, `verify`, `audit`, `runs` and `config show`",
        help order from 250;

    /// Skills that may run: open (all), approved, or locked
    trust: TrustMode, "MODE", default |_: &Layers| TrustMode::default();

    /// Skill that never runs, by name or sha256: digest; repeatable
    deny: Vec<DenyEntry>, "SKILL", default |_: &Layers| Vec::new();

    /// Directory of the host key, the approvals and the audit log
    trust_dir: Option<PathBuf>, "DIR", default |_: &Layers| None, documented as "`trust` in the state directory";

    /// Lock file, for `lock` and for --trust locked
    lock_file: PathBuf, "FILE", default |layers: &Layers| layers.environment().working_dir().join(LOCK_FILE_NAME),
        documented as "`skillbox.lock` in the working directory";

    /// Accepted publisher: every skill must be signed by one of them; repeatable
    require_signature: Vec<PublisherName>, "NAME", default |_: &Layers| Vec::new();

    /// File with a public key or certificate of a publisher; repeatable
    publishers: Vec<PublisherKey>, "NAME=FILE", default |_: &Layers| Vec::new();

    /// Audit log: on, sync (to disk before the result) or off
    audit: AuditMode, "MODE", default |_: &Layers| AuditMode::default();

    /// Maximum bytes of the audit log; the oldest files are removed
    audit_bytes: usize, "BYTES", default |_: &Layers| 4 << 30;

    /// Forward audit records to syslog (syslog+unix:/dev/log, syslog+udp://HOST:PORT, syslog+tcp://HOST:PORT) or to an HTTP
    /// collector (https://HOST/PATH); `serve`, `mcp`, `batch` and `audit forward` do it
    audit_forward: Option<ForwardTarget>, "ADDRESS", default |_: &Layers| None;

    /// File with the token for an HTTP collector of audit records
    audit_forward_token: Option<PathBuf>, "FILE", default |_: &Layers| None;

    /// Days that runs stay in the history
    history_days: usize, "DAYS", default |_: &Layers| 30;

    /// Maximum number of runs in the history; 0 keeps none
    history_runs: usize, "N", default |_: &Layers| 10_000;

    /// Maximum bytes of the history
    history_bytes: usize, "BYTES", default |_: &Layers| 256 << 20;
}

settings! {
    /// What agents see of skills, and what they may do with them.
    AgentFlags => AgentSettings, "Agents",
        accepted by "`prompt`, `tools`, `call`, `mcp`, `serve` and `config show`", help order from 100;

    /// Tool names, parameters and texts: skillbox, trpc, deepagents, saa or agentskills
    dialect: Dialect, "NAME", default |_: &Layers| Dialect::default(), project file Any;

    /// Effect of `allowed-tools` in loaded skills: recommend, restrict or strict
    policy: PolicyKind, "KIND", default |_: &Layers| PolicyKind::default(), project file STRICTER_POLICY;

    /// Tool that no policy blocks; repeatable, replaces the default list, '' empties it
    always_allowed: ToolSet, "TOOL", default |_: &Layers| ToolSet::default_tools(), project file SUBSET;

    /// Maximum characters of the skill list in a prompt
    budget: usize, "N", default |_: &Layers| 16_000, project file Any;

    /// Maximum number of loaded skills
    max_loaded: Option<usize>, "N", default |_: &Layers| None, documented as "`10`; none in the dialect `saa`", project file Any;

    /// Loading beyond the maximum: refuse, or evict the least recently used skill
    at_limit: AtLimit, "ACTION", default |_: &Layers| AtLimit::default(), project file Any;

    /// How long a skill stays loaded: session, turn or once
    load_mode: Option<LoadMode>, "MODE", default |_: &Layers| None,
        documented as "`session`; `turn` in the dialect `trpc`", project file Any;

    /// File with a template for the prompt section: text with {skills_list} and other placeholders
    prompt_template: Option<PathBuf>, "FILE", default |_: &Layers| None, documented as "the dialect's own text";

    /// File with the text on how to load skills, {skills_load_instructions} in a template
    load_instructions: Option<PathBuf>, "FILE", default |_: &Layers| None, documented as "the dialect's own text";

    /// Skills that a sub-agent has loaded when it starts: none (isolated), or those of its parent (inherit)
    subagent_inherit: Inheritance, "KIND", default |_: &Layers| Inheritance::default();

    /// Refuse to run skills that are not loaded
    require_loaded: bool, "BOOL", default |_: &Layers| false, project file TURN_ON;

    /// Maximum bytes of file content in a tool result; links lead to the rest
    inline_for_models: usize, "BYTES", default |_: &Layers| AgentOptions::INLINE_FOR_MODELS, project file AT_MOST;

    /// Commands in a skill's hooks: run them in the sandbox, or offer them to the host
    hooks: HookRunner, "ACTION", default |_: &Layers| HookRunner::default();
}

settings! {
    /// The HTTP server and its limits.
    ServeFlags => ServeSettings, "HTTP server", accepted by "`serve` and `config show`", help order from 150;

    /// Address of the HTTP API: an IP address with a port, or unix:PATH
    listen: ListenAddress, "ADDR", default |_: &Layers| ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 8484)));

    /// Accepted token as TENANT:sha256:HEX, printed by `skillbox serve token`; repeatable
    tokens: Vec<TokenHash>, "ENTRY", default |_: &Layers| Vec::new();

    /// Maximum concurrent runs and tool calls
    max_runs: usize, "N", default |_: &Layers| Limits::default().max_runs, project file AT_MOST;

    /// Maximum runs and tool calls that wait in the queue
    max_queued: usize, "N", default |_: &Layers| Limits::default().max_queued, project file AT_MOST;

    /// Maximum open connections
    max_connections: usize, "N", default |_: &Layers| Limits::default().max_connections, project file AT_MOST;

    /// Maximum bytes of a JSON request body
    max_body: usize, "BYTES", default |_: &Layers| Limits::default().max_body_bytes, project file AT_MOST;

    /// Maximum bytes of memory for all request bodies; a tenant may use half of it
    max_buffered: usize, "BYTES", default |_: &Layers| host_memory::default_buffer_bytes(),
        documented as "a quarter of the memory that the server may use, between 64 MiB and 1 GiB";

    /// Maximum bytes of an uploaded file
    max_upload: usize, "BYTES", default |_: &Layers| 1 << 30, project file AT_MOST;

    /// Seconds a client may take to send the head of a request
    head_time: usize, "SECONDS", default |_: &Layers| 30, project file AT_MOST;

    /// Seconds that runs may continue after a signal, before they are killed
    grace: usize, "SECONDS", default |_: &Layers| 10;

    /// Seconds without use after which a session is removed
    session_idle: usize, "SECONDS", default |_: &Layers| 7 * 24 * 3600;

    /// Seconds for which the results and the files of runs are kept
    results_ttl: usize, "SECONDS", default |_: &Layers| Limits::default().results_ttl.as_secs() as usize;

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
pub fn all_groups() -> [&'static SettingGroup; 5] {
    [
        &GlobalFlags::GROUP,
        &HostFlags::GROUP,
        &TrustFlags::GROUP,
        &AgentFlags::GROUP,
        &ServeFlags::GROUP,
    ]
}

/// Reads the layers below the flags: the environment, and the config file at `config_path` or else the
/// default ones.
pub fn read_layers(environment: Environment, config_path: Option<&Path>) -> Result<Layers, SettingError> {
    let layers = Layers::read(environment, config_path, all_keys())?;
    let mut refusals = refused_settings(&layers)?;
    refusals.extend(layers.refused_secrets());
    Ok(layers.with_refusals(refusals))
}

/// The settings of the working directory's config file that need the user's trust.
fn refused_settings(layers: &Layers) -> Result<Vec<UntrustedSetting>, SettingError> {
    let Some(layers) = layers.for_untrusted_file() else {
        return Ok(Vec::new());
    };
    let resolved = [
        GlobalFlags::default().resolve(&layers)?.1,
        HostFlags::default().resolve(&layers)?.1,
        TrustFlags::default().resolve(&layers)?.1,
        AgentFlags::default().resolve(&layers)?.1,
        ServeFlags::default().resolve(&layers)?.1,
    ];
    Ok(resolved
        .concat()
        .into_iter()
        .filter_map(|setting| setting.refused)
        .collect())
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
