//! `skillbox config`: the settings in force, and who said so.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Answer, Context, show};
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags, ServeFlags, Told};

/// Show the settings in force, and where each came from
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox config show",
    "skillbox config show --executor docker           with a flag, as another command would see it",
    "skillbox config show --config staging.toml --json",
    "skillbox help settings                           what each of them means",
))]
pub struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Every setting with its value and origin: a flag, a variable, a place in the config file, or the default
    Show {
        #[command(flatten)]
        host: Box<HostFlags>,
        #[command(flatten)]
        agent: Box<AgentFlags>,
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
}

/// Every setting, resolved.
#[derive(Serialize)]
pub struct ShownSettings {
    /// The config file in force.
    pub config_file: Option<PathBuf>,
    /// In the order of the table.
    pub settings: Vec<ShownSetting>,
}

/// One setting with what is known of it.
#[derive(Serialize)]
pub struct ShownSetting {
    pub key: &'static str,
    pub flag: String,
    pub variable: String,
    pub about: &'static str,
    pub value: String,
    pub origin: String,
}

pub fn run(args: &ConfigArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let Verb::Show { host, agent, serve } = &args.verb;
    show(&ShownSettings::gather(context, host, agent, serve)?, context, terminal)
}

impl ShownSettings {
    /// The settings of every group, with these flags on top.
    pub fn gather(
        context: &Context<'_>,
        host: &HostFlags,
        agent: &AgentFlags,
        serve: &ServeFlags,
    ) -> Result<Self, Failure> {
        let (_, of_runs) = host.resolve(context.layers)?;
        let (_, of_agents) = agent.resolve(context.layers)?;
        let (_, of_servers) = serve.resolve(context.layers)?;
        let groups = [&of_runs, &of_agents, &of_servers];
        let everything = context.told_settings.iter().chain(groups.into_iter().flatten());
        Ok(Self {
            config_file: context.layers.config_path().map(ToOwned::to_owned),
            settings: everything.map(ShownSetting::of).collect(),
        })
    }

    /// Which file, for people.
    pub fn config_file_line(&self, page: &mut Page) {
        let path = self.config_file.as_ref();
        let shown = path.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        page.line(&[Span::new(Tone::Heading, "config file in force: "), Span::plain(shown)]);
    }
}

impl ShownSetting {
    fn of(told: &Told) -> Self {
        Self {
            key: told.key,
            flag: told.flag.clone(),
            variable: told.variable.clone(),
            about: told.about,
            value: told.value.clone(),
            origin: told.origin.to_string(),
        }
    }
}

impl Answer for ShownSettings {
    fn render(&self, page: &mut Page) {
        self.config_file_line(page);
        page.gap();
        for setting in &self.settings {
            let text = format!("{} ({})", setting.value, setting.origin);
            page.beside(2, Span::new(Tone::Name, setting.key), 22, Tone::Plain, &text);
        }
    }
}
