//! Arguments and measurements of the subcommand `serve`.

use std::path::PathBuf;
use std::time::Duration;

use super::client::{HttpClient, McpClient};
use super::load_test;
use super::server::ServerProcess;
use crate::bench_runtime::{BenchRuntime, RunSpec, SandboxMode};
use crate::comparison::{Comparison, Timings};
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};

/// The memory limit of an idle server.
const IDLE_LIMIT_MIB: f64 = 25.0;
/// The limit of the memory growth under load, which allows for threads and buffers.
const GROWTH_LIMIT_MIB: f64 = 16.0;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 300, value_name = "N")]
    pub rounds: usize,
    /// Number of concurrent clients
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub clients: usize,
    /// Duration of the load test
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub seconds: u64,
    /// The skillbox program for the servers; by default the one in the directory of this program
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputOptions,
}

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("skillbox"),
    };
    let runtime = BenchRuntime::new(SandboxMode::Parked)?;
    let http = ServerProcess::start(&program, &runtime, &["serve", "--listen", "127.0.0.1:0"])?;
    let mcp = ServerProcess::start(&program, &runtime, &["mcp", "--http", "127.0.0.1:0"])?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = http.resident_mib()?;
    let times = compare(&runtime, &http, &mcp, arguments.rounds)?;
    let mut report = Report {
        targets: vec![
            times.target(OVER_HTTP, IN_PROCESS, 1.3),
            times.target(OVER_MCP, IN_PROCESS, 1.5),
            memory_target("memory of an idle server", "no reference", idle, IDLE_LIMIT_MIB),
        ],
        tables: vec![times],
        remarks: Vec::new(),
    };
    // The first, shorter load creates threads and buffers. The second must not take much more memory.
    let clients = arguments.clients;
    load_test::measure(&http, clients, Duration::from_secs(arguments.seconds.min(5)));
    let before = http.resident_mib()?;
    let load_test = load_test::measure(&http, clients, Duration::from_secs(arguments.seconds));
    let after = http.resident_mib()?;
    report.targets.extend(load_test.targets());
    let growth = memory_target(
        "memory after the load",
        "before the load",
        after - before,
        GROWTH_LIMIT_MIB,
    );
    report.targets.push(growth);
    report.remarks = load_test.remarks();
    report.remarks.push(format!(
        "memory of the HTTP server: {idle:.1} MiB idle, {before:.1} MiB before the load, {after:.1} MiB after it"
    ));
    Ok(report)
}

const IN_PROCESS: &str = "in process";
/// A run in a session keeps its workspace on disk, as every run of an MCP client does.
const IN_PROCESS_SESSION: &str = "in process, in a session";
const OVER_HTTP: &str = "HTTP, POST /v1/runs?wait";
const OVER_MCP: &str = "MCP, streamable HTTP";

fn compare(
    runtime: &BenchRuntime,
    http: &ServerProcess,
    mcp: &ServerProcess,
    rounds: usize,
) -> anyhow::Result<Timings> {
    let mut comparison = Comparison::new("one `skill_run` of `true`, in process and over each protocol");
    let mut http = HttpClient::connect(&http.address)?;
    let mut mcp = McpClient::connect(&mcp.address)?;
    comparison.add(IN_PROCESS, || runtime.run("true"));
    let session_run = RunSpec {
        command: "true",
        session: Some("measured"),
        ..RunSpec::default()
    };
    comparison.add(IN_PROCESS_SESSION, || runtime.run_spec(session_run).map(drop));
    comparison.add(OVER_HTTP, move || http.run_skill());
    comparison.add(OVER_MCP, move || mcp.run_skill());
    comparison.measure(rounds)
}

fn memory_target(subject: &str, reference: &str, measured: f64, limit_mib: f64) -> Target {
    Target {
        subject: subject.to_owned(),
        reference: reference.to_owned(),
        measured: Some(measured),
        bound: Bound::MebibytesAtMost(limit_mib),
    }
}
