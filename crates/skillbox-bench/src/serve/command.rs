//! The arguments of `serve`, and the measurement.

use std::path::PathBuf;
use std::time::Duration;

use super::client::{HttpClient, McpClient};
use super::load_test;
use super::server::Server;
use crate::bench_runtime::{BenchRuntime, RunSpec, Slots};
use crate::claim::{Bound, Claim};
use crate::comparison::{Comparison, Timings};
use crate::report::{OutputOptions, Report};

/// The memory limit of an idle server.
const IDLE_LIMIT_MIB: f64 = 25.0;
/// The limit of the growth under load, by threads and buffers.
const GROWTH_LIMIT_MIB: f64 = 16.0;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 300, value_name = "N")]
    pub rounds: usize,
    /// Number of concurrent clients
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub clients: usize,
    /// Duration of the load
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub seconds: u64,
    /// The skillbox program that serves; by default the one beside this program
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
    let runtime = BenchRuntime::new(Slots::Parked)?;
    let http = Server::start(&program, &runtime, &["serve", "--listen", "127.0.0.1:0"])?;
    let mcp = Server::start(&program, &runtime, &["mcp", "--http", "127.0.0.1:0"])?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = http.resident_mib()?;
    let times = compare(&runtime, &http, &mcp, arguments.rounds)?;
    let mut report = Report {
        claims: vec![
            times.claim(OVER_HTTP, IN_PROCESS, 1.3),
            times.claim(OVER_MCP, IN_PROCESS, 1.5),
            memory_claim("memory of an idle server", "nothing", idle, IDLE_LIMIT_MIB),
        ],
        tables: vec![times],
        remarks: Vec::new(),
    };
    // The first load creates threads and buffers. The second one, which is longer, must not take much more memory.
    let clients = arguments.clients;
    load_test::measure(&http, clients, Duration::from_secs(arguments.seconds.min(5)));
    let before = http.resident_mib()?;
    let load_test = load_test::measure(&http, clients, Duration::from_secs(arguments.seconds));
    let after = http.resident_mib()?;
    report.claims.extend(load_test.claims());
    let growth = memory_claim(
        "memory after the load",
        "before the load",
        after - before,
        GROWTH_LIMIT_MIB,
    );
    report.claims.push(growth);
    report.remarks = load_test.remarks();
    report.remarks.push(format!(
        "memory of the HTTP server: {idle:.1} MiB idle, {before:.1} MiB before the load, {after:.1} MiB after it"
    ));
    Ok(report)
}

const IN_PROCESS: &str = "in process";
/// Like every run of an MCP client: its workspace is kept on disk.
const IN_A_SESSION: &str = "in process, in a session";
const OVER_HTTP: &str = "HTTP, POST /v1/runs?wait";
const OVER_MCP: &str = "MCP, streamable HTTP";

fn compare(runtime: &BenchRuntime, http: &Server, mcp: &Server, rounds: usize) -> anyhow::Result<Timings> {
    let mut comparison = Comparison::new("one `skill_run` of `true`, in process and over each protocol");
    let mut http = HttpClient::connect(&http.address)?;
    let mut mcp = McpClient::connect(&mcp.address)?;
    comparison.add(IN_PROCESS, || runtime.run("true"));
    let in_a_session = RunSpec {
        command: "true",
        session: Some("measured"),
        ..RunSpec::default()
    };
    comparison.add(IN_A_SESSION, || runtime.run_spec(in_a_session).map(drop));
    comparison.add(OVER_HTTP, move || http.skill_run());
    comparison.add(OVER_MCP, move || mcp.skill_run());
    comparison.measure(rounds)
}

fn memory_claim(what: &str, against: &str, measured: f64, most: f64) -> Claim {
    Claim {
        what: what.to_owned(),
        against: against.to_owned(),
        measured: Some(measured),
        bound: Bound::MebibytesAtMost(most),
    }
}
