//! `skillbox config`: the settings in force, and where each value came from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags, ResolvedSetting, ServeFlags};

/// Show the settings in force and where each value comes from
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox config show",
    "skillbox config show --executor docker       with a flag applied",
    "skillbox config show --config staging.toml --json",
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
        agent: Box<AgentFlags>,
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
}

#[derive(Serialize)]
struct SettingsInForce {
    config_file: Option<PathBuf>,
    settings: Vec<SettingInForce>,
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
    let Verb::Show { host, agent, serve } = &args.verb;
    let (_, host) = host.resolve(context.layers)?;
    let (_, agent) = agent.resolve(context.layers)?;
    let (_, serve) = serve.resolve(context.layers)?;
    let settings = context
        .resolved_settings
        .iter()
        .chain(&host)
        .chain(&agent)
        .chain(&serve);
    let in_force = SettingsInForce {
        config_file: context.layers.config_path().map(ToOwned::to_owned),
        settings: settings.map(SettingInForce::from).collect(),
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
        let path = self.config_file.as_ref();
        let shown = path.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        page.line(&[Span::new(Tone::Heading, "config file: "), Span::plain(shown)]);
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
    }
}
