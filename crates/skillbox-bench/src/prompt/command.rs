//! The arguments of `prompt`, and the measurement.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use skillbox_loader::{AgentName, Dialect, HistoryCompleteness, PolicyKind, Settings};
use skillbox_repository::Catalog;

use super::row::Row;
use super::sessions::{self, ToolCall, loaded_session, session_of, skill_on_disk};
use super::{deepagents, table};
use crate::measure::Samples;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds; the table contains medians
    #[arg(long, default_value_t = 51, value_name = "N")]
    rounds: usize,
    /// Python interpreter, with the package `deepagents` where it is to be compared
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
    /// Measure one part only
    #[arg(long, value_enum, value_name = "WHAT")]
    only: Option<Part>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The parts of the measurement.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Part {
    Overview,
    Policy,
    Loading,
}

/// A budget that every description fits.
const UNLIMITED: usize = usize::MAX / 2;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let wanted = |part| arguments.only.is_none_or(|only| only == part);
    if wanted(Part::Overview) {
        overviews(arguments, &mut rows)?;
    }
    if wanted(Part::Policy) {
        policies(arguments, &mut rows)?;
    }
    if wanted(Part::Loading) {
        rows.push(Row {
            group: "loading".to_owned(),
            label: "a skill of 40 KiB, warm".to_owned(),
            samples: load(arguments)?,
            target: Some(Duration::from_micros(300)),
            peer: None,
        });
    }
    if arguments.json {
        table::print_json(&rows)
    } else {
        table::print(&rows)
    }
}

fn overviews(arguments: &Arguments, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    for (skills, shown_skills, target) in [
        (1_000, "1,000", Duration::from_millis(1)),
        (10_000, "10,000", Duration::from_millis(10)),
    ] {
        for dialect in Dialect::ALL {
            for (budget, shown) in [
                (Settings::default().max_list_chars, "16,000 characters"),
                (UNLIMITED, "without a limit"),
            ] {
                let samples = overview(arguments, *dialect, skills, budget)?;
                let peer = (*dialect == Dialect::Deepagents && budget == UNLIMITED)
                    .then(|| deepagents::render(&arguments.python, skills))
                    .transpose()?;
                rows.push(Row {
                    group: format!("overview of {shown_skills} skills"),
                    label: format!("{dialect}, {shown}"),
                    samples,
                    target: Some(target),
                    peer,
                });
            }
        }
    }
    Ok(())
}

fn policies(arguments: &Arguments, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    for call in ToolCall::ALL {
        rows.push(Row {
            group: "policy check with 10 loaded skills".to_owned(),
            label: call.description().to_owned(),
            samples: policy(arguments, *call)?,
            target: Some(Duration::from_micros(5)),
            peer: None,
        });
    }
    Ok(())
}

fn overview(arguments: &Arguments, dialect: Dialect, skills: usize, budget: usize) -> anyhow::Result<Samples> {
    let mut settings = Settings::new(dialect);
    settings.max_list_chars = budget;
    let session = session_of(settings, skills)?;
    let (agent, catalog) = (AgentName::default(), Catalog::default());
    let mut samples = Samples::default();
    for _ in 0..arguments.rounds {
        let section = samples.time(|| session.modify_request(&catalog, &agent, HistoryCompleteness::Complete, &[]));
        ensure!(
            section.is_some_and(|section| section.text.len() > 1_000),
            "the prompt is empty"
        );
    }
    Ok(samples)
}

fn policy(arguments: &Arguments, call: ToolCall) -> anyhow::Result<Samples> {
    /// A single call takes less time than reading the clock, so many are timed together.
    const CALLS: u32 = 1_000;
    let mut settings = Settings::new(Dialect::Skillbox);
    settings.policy = PolicyKind::Restrict;
    let session = loaded_session(settings)?;
    let (agent, (tool, input)) = (AgentName::default(), call.tool_and_input());
    let mut samples = Samples::default();
    for _ in 0..arguments.rounds {
        let mut batch = Samples::default();
        let passed = batch.time(|| {
            (0..CALLS)
                .filter(|_| session.wrap_tool_call(&agent, tool, &input).is_ok())
                .count()
        });
        ensure!(
            passed == if call.is_allowed() { CALLS as usize } else { 0 },
            "the policy gave another verdict"
        );
        samples.push(batch.median().unwrap_or_default() / CALLS);
    }
    Ok(samples)
}

fn load(arguments: &Arguments) -> anyhow::Result<Samples> {
    let (_directory, catalog) = skill_on_disk(40 << 10)?;
    let mut samples = Samples::default();
    for _ in 0..arguments.rounds {
        let session = sessions::first_turn(&catalog);
        let input = serde_json::json!({"skill": "big"});
        let agent = AgentName::default();
        let reply = samples.time(|| session.call(&catalog, &agent, Default::default(), "skill_load", &input));
        ensure!(reply.is_ok(), "the skill was not loaded");
    }
    Ok(samples)
}
