//! The benchmark program: one subcommand for each thing that is measured, one file for each subcommand.
//!
//! Every measurement runs beside its yardstick in the same process run, round for round, so that a busy machine
//! slows both; the table gives medians and says whether the target is met. Start it in a release build.

mod catalogue;
mod contest;
mod docker;
mod measure;
mod prompt;
mod run;
mod serve;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "skillbox-bench",
    about = "Measures skillbox against its peers and its own targets"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Scanning, refreshing and remembering thousands of skills
    Catalogue(catalogue::Arguments),
    /// One isolated run beside a bare spawn and bubblewrap
    Run(run::Arguments),
    /// One run in a container beside `docker run` and `docker exec`
    Docker(docker::Arguments),
    /// Prints what one catalogue costs in memory; started by `catalogue` as a process of its own
    #[command(hide = true)]
    CatalogueMemory(catalogue::memory::Arguments),
    /// The same run over HTTP and over MCP, and what many clients at once get
    Serve(serve::Arguments),
    /// Prompts, the tool policy, and loading a skill
    Prompt(prompt::Arguments),
}

fn main() -> anyhow::Result<()> {
    skillbox_sandbox::become_spawner_if_asked();
    match Arguments::parse().command {
        Command::Catalogue(arguments) => catalogue::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Docker(arguments) => docker::run(&arguments),
        Command::CatalogueMemory(arguments) => catalogue::memory::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Prompt(arguments) => prompt::run(&arguments),
    }
}
