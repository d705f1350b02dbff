//! `serve`: what a run costs over HTTP and over MCP beside the same run in process, and what a crowd gets.
//!
//! The servers are processes of their own; the load comes from this one, over loopback.

mod client;
mod crowd;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use crate::claim::{Bound, Claim};
use crate::contest::{Contest, Times};
use crate::ready::{Ready, Slots, Wish};
use crate::report::{How, Report};
use client::{Http, Mcp};
use server::Server;

/// What an idle server may take.
const IDLE_MIB: f64 = 25.0;
/// What it may take more after a crowd than before: the threads and buffers of its busiest moment.
const GROWTH_MIB: f64 = 16.0;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 300, value_name = "N")]
    pub rounds: usize,
    /// How many clients come at once
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub clients: usize,
    /// For how long they come
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub seconds: u64,
    /// The skillbox program that serves; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub how: How,
}

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("skillbox"),
    };
    let ready = Ready::new(Slots::Parked)?;
    let http = Server::start(&program, &ready, &["serve", "--listen", "127.0.0.1:0"])?;
    let mcp = Server::start(&program, &ready, &["mcp", "--http", "127.0.0.1:0"])?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = http.resident_mib()?;
    let times = ways(&ready, &http, &mcp, arguments.rounds)?;
    let mut report = Report {
        claims: vec![
            times.claim(OVER_HTTP, IN_PROCESS, 1.3),
            times.claim(OVER_MCP, IN_PROCESS, 1.5),
            mebibytes("memory of an idle server", "nothing", idle, IDLE_MIB),
        ],
        tables: vec![times],
        remarks: Vec::new(),
    };
    // Its threads and buffers come with the first crowd; what counts is whether a longer one takes more.
    let clients = arguments.clients;
    crowd::measure(&http, clients, Duration::from_secs(arguments.seconds.min(5)));
    let before = http.resident_mib()?;
    let crowd = crowd::measure(&http, clients, Duration::from_secs(arguments.seconds));
    let after = http.resident_mib()?;
    report.claims.extend(crowd.claims());
    let growth = mebibytes("memory after a crowd", "before it", after - before, GROWTH_MIB);
    report.claims.push(growth);
    report.remarks = crowd.remarks();
    report.remarks.push(format!(
        "memory of the HTTP server: {idle:.1} MiB idle, {before:.1} MiB before the crowd, {after:.1} MiB after it"
    ));
    Ok(report)
}

const IN_PROCESS: &str = "in process";
/// As every run of an MCP client is: its workspace is kept on disk.
const IN_A_SESSION: &str = "in process, in a session";
const OVER_HTTP: &str = "HTTP, POST /v1/runs?wait";
const OVER_MCP: &str = "MCP, streamable HTTP";

fn ways(ready: &Ready, http: &Server, mcp: &Server, rounds: usize) -> anyhow::Result<Times> {
    let mut contest = Contest::new("one `skill_run` of `true`, in process and through the front doors");
    let mut http = Http::connect(&http.place)?;
    let mut mcp = Mcp::connect(&mcp.place)?;
    contest.way(IN_PROCESS, || ready.run("true"));
    let in_a_session = Wish {
        command: "true",
        session: Some("measured"),
        ..Wish::default()
    };
    contest.way(IN_A_SESSION, || ready.report(in_a_session).map(drop));
    contest.way(OVER_HTTP, move || http.skill_run());
    contest.way(OVER_MCP, move || mcp.skill_run());
    contest.hold(rounds)
}

fn mebibytes(what: &str, against: &str, measured: f64, most: f64) -> Claim {
    Claim {
        what: what.to_owned(),
        against: against.to_owned(),
        measured: Some(measured),
        bound: Bound::MebibytesAtMost(most),
    }
}
