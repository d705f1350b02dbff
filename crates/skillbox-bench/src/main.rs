//! The benchmark program: one subcommand, with one module, for each subject.
//!
//! Each round measures both the subject and its reference, so that a busy machine slows both. The output contains
//! percentiles, ratios, and whether the targets are met. Use a release build.

mod all;
mod batch;
mod bench_runtime;
mod catalog;
mod chart;
mod collect;
mod comparison;
mod docker;
mod peers;
mod prompt;
mod report;
mod run;
mod samples;
mod serve;
mod session;
mod stdout;
mod stepped_server;
mod target;
mod throughput;
mod trust;

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
    /// All measurements, with a list of all targets
    All(all::Arguments),
    /// One isolated run, compared with a bare spawn, bubblewrap and other sandboxes
    Run(run::Arguments),
    /// Later runs of one session
    Session(session::Arguments),
    /// Runs per second with every core busy
    Throughput(throughput::Arguments),
    /// Deciding about a run, recording it and keeping it; verifying the audit log
    Trust(trust::Arguments),
    /// Thousands of jobs in one batch, compared with the same runs and with `xargs -P`
    Batch(batch::Arguments),
    /// Collecting 100 files of 64 MiB in total
    Collect(collect::Arguments),
    /// Memory growth while a script writes 1 GiB of output
    Stdout(stdout::Arguments),
    /// Scanning and refreshing thousands of skills, and their memory
    Catalog(catalog::Arguments),
    /// Prompts, the tool policy, and loading a skill
    Prompt(prompt::Arguments),
    /// One run in a container, compared with `docker run` and `docker exec`
    Docker(docker::Arguments),
    /// Prints the memory of a catalog; `catalog` starts it as a separate process
    #[command(hide = true)]
    CatalogMemory(catalog::memory::Arguments),
    /// The same run over HTTP and over MCP, and runs of many concurrent clients
    Serve(serve::Arguments),
    /// A server that makes one run for each line of its input; `run` starts it as a separate process
    #[command(hide = true)]
    SteppedServer(stepped_server::Arguments),
}

fn main() -> anyhow::Result<()> {
    skillbox_sandbox::run_spawner_if_requested();
    match Arguments::parse().command {
        Command::All(arguments) => all::run(&arguments),
        Command::Run(arguments) => report::print_report(&run::measure(&arguments)?, arguments.output),
        Command::Session(arguments) => report::print_report(&session::measure(&arguments)?, arguments.output),
        Command::Throughput(arguments) => report::print_report(&throughput::measure(&arguments)?, arguments.output),
        Command::Trust(arguments) => report::print_report(&trust::measure(&arguments)?, arguments.output),
        Command::Batch(arguments) => report::print_report(&batch::measure(&arguments)?, arguments.output),
        Command::Collect(arguments) => report::print_report(&collect::measure(&arguments)?, arguments.output),
        Command::Stdout(arguments) => report::print_report(&stdout::measure()?, arguments.output),
        Command::Catalog(arguments) => catalog::run(&arguments),
        Command::Prompt(arguments) => prompt::run(&arguments),
        Command::Docker(arguments) => docker::run(&arguments),
        Command::CatalogMemory(arguments) => catalog::memory::run(&arguments),
        Command::Serve(arguments) => report::print_report(&serve::measure(&arguments)?, arguments.output),
        Command::SteppedServer(arguments) => stepped_server::serve(&arguments),
    }
}
