//! `skillbox docker`: the image for runs in containers.

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_executor::docker::{BuildOptions, DOCKERFILE};
use skillbox_model::{ErrorBody, ExitCode, with_causes};

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, Verbosity};
use crate::runtime_setup;
use crate::settings::HostFlags;

/// Build the image for runs in containers
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox docker build-runner",
    "skillbox docker build-runner --base my-python:3.12",
    "skillbox docker dockerfile > Dockerfile.runner       a Dockerfile to adapt",
))]
pub struct DockerArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Build the image from the built-in Dockerfile and runner
    BuildRunner {
        /// Base image instead of the default one
        #[arg(long, value_name = "IMAGE")]
        base: Option<String>,
        #[command(flatten)]
        host: Box<HostFlags>,
    },
    /// Print the built-in Dockerfile
    Dockerfile,
}

#[derive(Serialize)]
struct BuiltImage {
    image: String,
    id: String,
}

pub fn run(args: &DockerArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Verb::Dockerfile => {
            terminal.write_stdout(DOCKERFILE.as_bytes())?;
            Ok(ExitCode::OK)
        }
        Verb::BuildRunner { base, host } => {
            let (host, _) = host.resolve(context.layers)?;
            let options = BuildOptions {
                image: host.docker_image.clone(),
                base: base.clone(),
            };
            let is_printed = context.verbosity != Verbosity::Quiet;
            let mut print_line = |line: &str| {
                if is_printed {
                    // A closed stderr does not end the build.
                    let _closed = terminal.write_stderr(format!("{line}\n").as_bytes());
                }
            };
            let id = runtime_setup::docker_executor(context, &host, 0, Vec::new())
                .build_image(&options, &mut print_line)
                .map_err(|error| {
                    let mut body = ErrorBody::new(error.code(), with_causes(&error));
                    body.hint = error.hint().or(body.hint);
                    Failure::from_body(body)
                })?;
            print_output(
                &BuiltImage {
                    image: options.image,
                    id,
                },
                context,
                terminal,
            )
        }
    }
}

impl CommandOutput for BuiltImage {
    fn render(&self, page: &mut Page) {
        page.line(&[
            Span::plain("built "),
            Span::new(Tone::Name, &self.image),
            Span::new(Tone::Dim, format!(" {}", self.id)),
        ]);
    }
}
