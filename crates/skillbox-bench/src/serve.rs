//! `serve`: what a run costs over HTTP and over MCP beside the same run in process, and what a crowd gets.
//!
//! The servers are processes of their own; the load comes from this one, over loopback.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

mod client;
mod crowd;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use skillbox_runtime::ToolCall;

use crate::contest::Contest;
use crate::run::ready::Ready;
use client::{Http, Mcp};
use server::Server;

/// What an idle server may take.
const IDLE_MIB: f64 = 25.0;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 300, value_name = "N")]
    rounds: usize,
    /// How many clients come at once
    #[arg(long, default_value_t = 64, value_name = "N")]
    clients: usize,
    /// For how long they come
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    seconds: u64,
    /// The skillbox program that serves; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("skillbox"),
    };
    let ready = Ready::new()?;
    let http = Server::start(&program, &ready, &["serve", "--listen", "127.0.0.1:0"])?;
    let mcp = Server::start(&program, &ready, &["mcp", "--http", "127.0.0.1:0"])?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = http.resident_mib()?;
    let contest = ways(&ready, &http, &mcp, arguments.rounds)?;
    let before = http.resident_mib()?;
    let crowd = crowd::measure(&http, arguments.clients, Duration::from_secs(arguments.seconds))?;
    let after = http.resident_mib()?;
    let is_met = contest.is_met() && crowd.is_met() && idle <= IDLE_MIB;
    if arguments.json {
        println!(
            "{:#}",
            json!({
                "contest": contest.to_json(), "crowd": crowd.to_json(), "idle_mib": idle, "idle_at_most_mib": IDLE_MIB,
                "before_crowd_mib": before, "after_crowd_mib": after, "met": is_met,
            })
        );
    } else {
        contest.print()?;
        crowd.print();
        let verdict = if idle <= IDLE_MIB { "met" } else { "MISSED" };
        println!("\nmemory of the HTTP server");
        println!("  idle {idle:.1} MiB (at most {IDLE_MIB:.0} MiB): {verdict}");
        println!("  before the crowd {before:.1} MiB, after it {after:.1} MiB");
    }
    anyhow::ensure!(is_met || !arguments.check, "a target was missed");
    Ok(())
}

fn ways<'a>(ready: &'a Ready, http: &Server, mcp: &Server, rounds: usize) -> anyhow::Result<Contest<'a>> {
    let mut contest = Contest::new("one `skill_run` of `true`, in process and through the front doors");
    let mut http = Http::connect(&http.place)?;
    let mut mcp = Mcp::connect(&mcp.place)?;
    let session = ready.session()?;
    let call = ToolCall::new("skill_run", json!({"skill": "small", "command": "true"}));
    contest.way("in process", || ready.run("true"));
    // A client of the protocol has a session, whose workspace and state are kept on disk.
    contest.way("in process, in a session", move || {
        let outcome = session.call(&call)?;
        anyhow::ensure!(outcome.result["exit_code"] == 0, "{}", outcome.text);
        Ok(())
    });
    contest.way("HTTP, POST /v1/runs?wait", move || http.skill_run());
    contest.way("MCP, streamable HTTP", move || mcp.skill_run());
    contest.target("HTTP, POST /v1/runs?wait", "in process", 1.3);
    contest.target("MCP, streamable HTTP", "in process, in a session", 1.5);
    contest.hold(rounds)?;
    Ok(contest)
}
