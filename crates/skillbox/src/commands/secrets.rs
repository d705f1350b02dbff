//! `skillbox secrets`: the configured secrets, and whether their sources have values. Values are never printed.

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode, SecretInjection, SecretName};
use skillbox_runtime::{ConfiguredSecret, SkillSelector};

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::secret_source::configured_secrets;

/// List the configured secrets and check their sources, without showing any value
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox secrets list",
    "skillbox secrets check                                read every source",
    "skillbox secrets check API_TOKEN",
    "skillbox run weather --secret API_TOKEN --allow-net api.example.com -- 'python3 scripts/today.py'",
    "skillbox approve weather --secret API_TOKEN --network api.example.com",
))]
pub struct SecretsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the secrets of the configuration
    List,
    /// Read the sources; exit 1 if one has no usable value
    Check {
        /// Only these secrets
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Serialize)]
struct SecretList {
    secrets: Vec<ListedSecret>,
}

#[derive(Serialize)]
struct ListedSecret {
    name: SecretName,
    from: String,
    inject: SecretInjection,
    hosts: Vec<String>,
    skills: Vec<String>,
    /// Whether the source has a usable value; absent if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_usable: Option<bool>,
    /// Why the source has no usable value.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub fn run(args: &SecretsArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let configured = configured_secrets(context.layers).secrets;
    let secrets: Vec<ListedSecret> = match &args.verb {
        Verb::List => configured.iter().map(|(name, secret)| listed(name, secret)).collect(),
        Verb::Check { names } => {
            let unknown = names
                .iter()
                .find(|name| !configured.keys().any(|known| known.as_str() == **name));
            if let Some(name) = unknown {
                let message = format!("no secret is named {name:?} in the configuration");
                return Err(Failure::new(ErrorCode::SecretMissing, message)
                    .with_hint("see `skillbox secrets list`, and `skillbox config show` for the config files"));
            }
            let selected = configured
                .iter()
                .filter(|(name, _)| names.is_empty() || names.iter().any(|selected| selected == name.as_str()));
            selected.map(|(name, secret)| checked(name, secret)).collect()
        }
    };
    print_output(&SecretList { secrets }, context, terminal)
}

fn listed(name: &SecretName, secret: &ConfiguredSecret) -> ListedSecret {
    ListedSecret {
        name: name.clone(),
        from: secret.source.clone(),
        inject: secret.injection,
        hosts: secret.hosts.iter().map(ToString::to_string).collect(),
        skills: secret.skills.iter().map(selector_text).collect(),
        is_usable: None,
        problem: None,
    }
}

fn checked(name: &SecretName, secret: &ConfiguredSecret) -> ListedSecret {
    let problem = (secret.read)().err().map(|error| skillbox_model::with_causes(&*error));
    ListedSecret {
        is_usable: Some(problem.is_none()),
        problem,
        ..listed(name, secret)
    }
}

fn selector_text(selector: &SkillSelector) -> String {
    match selector {
        SkillSelector::Name(name) => name.to_string(),
        SkillSelector::Digest(digest) => digest.to_string(),
    }
}

impl CommandOutput for SecretList {
    fn render(&self, page: &mut Page) {
        if self.secrets.is_empty() {
            page.paragraph(
                0,
                Tone::Dim,
                "No secret is configured: add `[secrets.NAME]` to the config file.",
            );
        }
        for secret in &self.secrets {
            page.line(&[Span::new(Tone::Name, secret.name.as_str())]);
            let inject = match secret.inject {
                SecretInjection::Header => "header: the script holds a placeholder",
                SecretInjection::Env => "env: the script holds the value",
            };
            let fields = [
                ("from", secret.from.clone()),
                ("inject", inject.to_owned()),
                ("hosts", secret.hosts.join(", ")),
                ("skills", secret.skills.join(", ")),
            ];
            for (label, text) in fields.iter().filter(|(_, text)| !text.is_empty()) {
                page.labelled(2, Span::new(Tone::Dim, *label), 9, Tone::Plain, text);
            }
            match (secret.is_usable, &secret.problem) {
                (Some(true), _) => page.labelled(2, Span::new(Tone::Dim, "value"), 9, Tone::Plain, "usable"),
                (_, Some(problem)) => {
                    page.labelled(2, Span::new(Tone::Warning, "value"), 9, Tone::Plain, problem);
                }
                (_, None) => {}
            }
        }
    }

    fn exit_code(&self) -> u8 {
        if self.secrets.iter().any(|secret| secret.problem.is_some()) {
            ExitCode::FAILURE
        } else {
            ExitCode::OK
        }
    }
}
