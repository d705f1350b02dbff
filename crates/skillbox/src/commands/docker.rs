//! `skillbox docker`: the image that runs in containers take place in.

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_executor::docker::{BuildOptions, DOCKERFILE};
use skillbox_model::{ErrorBody, ExitCode, with_causes};

use super::{Answer, Context, show};
use crate::engine;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, Verbosity};
use crate::settings::HostFlags;

/// Build the image for runs in containers
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox docker build-runner",
    "skillbox docker build-runner --base my-python:3.12",
    "skillbox docker dockerfile > Dockerfile.runner       the recipe, to change it",
))]
pub struct DockerArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Build the image from the recipe and the runner inside this program
    BuildRunner {
        /// Start from this image instead of the recipe's
        #[arg(long, value_name = "IMAGE")]
        base: Option<String>,
        #[command(flatten)]
        host: Box<HostFlags>,
    },
    /// Print the recipe
    Dockerfile,
}

#[derive(Serialize)]
struct Built {
    image: String,
    id: String,
}

pub fn run(args: &DockerArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Verb::Dockerfile => {
            terminal.exact_out(DOCKERFILE.as_bytes())?;
            Ok(ExitCode::OK)
        }
        Verb::BuildRunner { base, host } => {
            let (host, _) = host.resolve(context.layers)?;
            let how = BuildOptions {
                image: host.docker_image.clone(),
                base: base.clone(),
            };
            let is_told = context.verbosity != Verbosity::Quiet;
            let mut tell = |words: &str| {
                if is_told {
                    // A listener that went away does not end the build.
                    let _gone = terminal.exact_err(format!("{words}\n").as_bytes());
                }
            };
            let id = engine::docker(context, &host, 0)
                .build_image(&how, &mut tell)
                .map_err(|error| {
                    let mut body = ErrorBody::new(error.code(), with_causes(&error));
                    body.hint = error.hint().or(body.hint);
                    Failure::from_body(body)
                })?;
            show(&Built { image: how.image, id }, context, terminal)
        }
    }
}

impl Answer for Built {
    fn render(&self, page: &mut Page) {
        page.line(&[
            Span::plain("built "),
            Span::new(Tone::Name, &self.image),
            Span::new(Tone::Dim, format!(" {}", self.id)),
        ]);
    }
}
