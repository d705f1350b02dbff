//! `skillbox config`: the settings in force, where each value came from, and the config files that the user trusts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_model::SecretName;

use super::config_trust::{self, TrustArgs};
use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags, ResolvedSetting, ServeFlags, TrustFlags};

/// Show the settings in force, and trust the config file of a directory
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox config show",
    "skillbox config show --executor docker       with a flag applied",
    "skillbox config show --config staging.toml --json",
    "skillbox config trust                        the ./skillbox.toml you have read",
    "skillbox help settings                       what each setting means",
))]
pub struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print every setting with its value and the origin of the value
    Show {
        #[command(flatten)]
        host: Box<HostFlags>,
        #[command(flatten)]
        trust: Box<TrustFlags>,
        #[command(flatten)]
        agent: Box<AgentFlags>,
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
    /// Trust the config file of the working directory until it changes
    Trust(TrustArgs),
    /// List the trusted config files
    Trusted,
    /// Stop trusting the config file of the working directory, or another one
    Revoke {
        /// The trusted file, as `config trusted` shows it
        file: Option<PathBuf>,
    },
}

#[derive(Serialize)]
struct SettingsInForce {
    /// The highest file.
    config_file: Option<PathBuf>,
    /// All files, highest first.
    config_files: Vec<PathBuf>,
    /// The settings of the working directory's file that are ignored because the user does not trust it.
    refused: Vec<String>,
    settings: Vec<SettingInForce>,
    /// The names of the configured secrets.
    secrets: Vec<SecretName>,
}

#[derive(Serialize)]
struct SettingInForce {
    key: &'static str,
    flag: String,
    variable: String,
    about: &'static str,
    value: String,
    origin: String,
    #[serde(skip)]
    value_with_origin: String,
}

pub fn run(args: &ConfigArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, trust, agent, serve) = match &args.verb {
        Verb::Show {
            host,
            trust,
            agent,
            serve,
        } => (host, trust, agent, serve),
        Verb::Trust(args) => return config_trust::trust(args, context, terminal),
        Verb::Trusted => return config_trust::list(context, terminal),
        Verb::Revoke { file } => return config_trust::revoke(file.as_deref(), context, terminal),
    };
    let (_, host) = host.resolve(context.layers)?;
    let (_, trust) = trust.resolve(context.layers)?;
    let (_, agent) = agent.resolve(context.layers)?;
    let (_, serve) = serve.resolve(context.layers)?;
    let settings = context
        .resolved_settings
        .iter()
        .chain(&host)
        .chain(&trust)
        .chain(&agent)
        .chain(&serve);
    let in_force = SettingsInForce {
        config_file: context.layers.config_paths().next().map(ToOwned::to_owned),
        config_files: context.layers.config_paths().map(ToOwned::to_owned).collect(),
        refused: context.layers.refusals().iter().map(ToString::to_string).collect(),
        settings: settings.map(SettingInForce::from).collect(),
        secrets: context.layers.secrets().into_keys().collect(),
    };
    print_output(&in_force, context, terminal)
}

impl From<&ResolvedSetting> for SettingInForce {
    fn from(setting: &ResolvedSetting) -> Self {
        let declaration = setting.declaration;
        Self {
            key: declaration.key,
            flag: format!("{} {}", declaration.flag(), declaration.placeholder),
            variable: declaration.variable(),
            about: declaration.description(),
            value: setting.value.clone(),
            origin: setting.origin.to_string(),
            value_with_origin: setting.value_with_origin(),
        }
    }
}

impl CommandOutput for SettingsInForce {
    fn render(&self, page: &mut Page) {
        let paths: Vec<String> = self
            .config_files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let shown = if paths.is_empty() {
            "none".to_owned()
        } else {
            paths.join(", ")
        };
        page.line(&[Span::new(Tone::Heading, "config file: "), Span::plain(shown)]);
        for refused in &self.refused {
            page.labelled(0, Span::new(Tone::Warning, "ignored:"), 9, Tone::Plain, refused);
        }
        page.blank_line();
        for setting in &self.settings {
            page.labelled(
                2,
                Span::new(Tone::Name, setting.key),
                22,
                Tone::Plain,
                &setting.value_with_origin,
            );
        }
        let secrets: Vec<&str> = self.secrets.iter().map(SecretName::as_str).collect();
        if !secrets.is_empty() {
            page.labelled(
                2,
                Span::new(Tone::Name, "secrets"),
                22,
                Tone::Plain,
                &secrets.join(", "),
            );
        }
    }
}
