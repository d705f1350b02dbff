//! The benchmark program: one subcommand for each thing that is measured, one file for each subcommand.
//!
//! Every measurement runs beside its yardstick in the same process run, round for round, so that a busy machine
//! slows both; the table gives percentiles and ratios and says whether the target is met. Start it in a release build.

mod all;
mod catalogue;
mod chart;
mod claim;
mod collect;
mod contest;
mod docker;
mod measure;
mod pace;
mod peers;
mod prompt;
mod ready;
mod report;
mod run;
mod serve;
mod session;
mod stdout;
mod throughput;

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
    /// Everything, with one table of all targets
    All(all::Arguments),
    /// One isolated run beside a bare spawn, bubblewrap and others
    Run(run::Arguments),
    /// Later runs of one session
    Session(session::Arguments),
    /// Runs per second with every core busy
    Throughput(throughput::Arguments),
    /// Bringing 64 MiB in 100 files back
    Collect(collect::Arguments),
    /// A gigabyte of output
    Stdout(stdout::Arguments),
    /// Scanning, refreshing and remembering thousands of skills
    Catalogue(catalogue::Arguments),
    /// Prompts, the tool policy, and loading a skill
    Prompt(prompt::Arguments),
    /// One run in a container beside `docker run` and `docker exec`
    Docker(docker::Arguments),
    /// Prints what one catalogue costs in memory; started by `catalogue` as a process of its own
    #[command(hide = true)]
    CatalogueMemory(catalogue::memory::Arguments),
    /// The same run over HTTP and over MCP, and what many clients at once get
    Serve(serve::Arguments),
    /// A server that makes one run for each line that it reads; started by `run` as a process of its own
    #[command(hide = true)]
    Pace(pace::Arguments),
}

fn main() -> anyhow::Result<()> {
    skillbox_sandbox::become_spawner_if_asked();
    match Arguments::parse().command {
        Command::All(arguments) => all::run(&arguments),
        Command::Run(arguments) => report::tell(&run::measure(&arguments)?, arguments.how),
        Command::Session(arguments) => report::tell(&session::measure(&arguments)?, arguments.how),
        Command::Throughput(arguments) => report::tell(&throughput::measure(&arguments)?, arguments.how),
        Command::Collect(arguments) => report::tell(&collect::measure(&arguments)?, arguments.how),
        Command::Stdout(arguments) => report::tell(&stdout::measure()?, arguments.how),
        Command::Catalogue(arguments) => catalogue::run(&arguments),
        Command::Prompt(arguments) => prompt::run(&arguments),
        Command::Docker(arguments) => docker::run(&arguments),
        Command::CatalogueMemory(arguments) => catalogue::memory::run(&arguments),
        Command::Serve(arguments) => report::tell(&serve::measure(&arguments)?, arguments.how),
        Command::Pace(arguments) => pace::serve(&arguments),
    }
}
