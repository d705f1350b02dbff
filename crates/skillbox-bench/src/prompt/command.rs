//! Arguments and measurements of the subcommand `prompt`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use skillbox_loader::{AgentName, Dialect, HistoryCompleteness, PolicyKind, Settings};
use skillbox_repository::Catalog;

use super::row::Row;
use super::sessions::{self, ToolCall, session_with_loaded_skills, session_with_skills, write_large_skill};
use super::{deepagents, table};
use crate::samples::Samples;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds; the table contains medians
    #[arg(long, default_value_t = 51, value_name = "N")]
    rounds: usize,
    /// Python interpreter; a comparison with `deepagents` needs that package installed in it
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
    /// Measure one part only
    #[arg(long, value_enum, value_name = "PART")]
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

/// A budget of characters that is never exceeded.
const UNLIMITED_CHARS: usize = usize::MAX / 2;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let is_selected = |part| arguments.only.is_none_or(|only| only == part);
    if is_selected(Part::Overview) {
        measure_overviews(arguments, &mut rows)?;
    }
    if is_selected(Part::Policy) {
        measure_policy_checks(arguments, &mut rows)?;
    }
    if is_selected(Part::Loading) {
        rows.push(Row {
            group: "loading".to_owned(),
            label: "a skill of 40 KiB, warm".to_owned(),
            samples: measure_load(arguments)?,
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

fn measure_overviews(arguments: &Arguments, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    for (skills, skills_label, target) in [
        (1_000, "1,000", Duration::from_millis(1)),
        (10_000, "10,000", Duration::from_millis(10)),
    ] {
        for dialect in Dialect::ALL {
            for (budget, budget_label) in [
                (Settings::default().max_list_chars, "16,000 characters"),
                (UNLIMITED_CHARS, "without a limit"),
            ] {
                let samples = measure_overview(arguments, *dialect, skills, budget)?;
                let peer = (*dialect == Dialect::Deepagents && budget == UNLIMITED_CHARS)
                    .then(|| deepagents::measure_rendering(&arguments.python, skills))
                    .transpose()?;
                rows.push(Row {
                    group: format!("overview of {skills_label} skills"),
                    label: format!("{dialect}, {budget_label}"),
                    samples,
                    target: Some(target),
                    peer,
                });
            }
        }
    }
    Ok(())
}

fn measure_policy_checks(arguments: &Arguments, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    for call in ToolCall::ALL {
        rows.push(Row {
            group: "policy check with 10 loaded skills".to_owned(),
            label: call.description().to_owned(),
            samples: measure_policy_check(arguments, *call)?,
            target: Some(Duration::from_micros(5)),
            peer: None,
        });
    }
    Ok(())
}

fn measure_overview(arguments: &Arguments, dialect: Dialect, skills: usize, budget: usize) -> anyhow::Result<Samples> {
    let mut settings = Settings::new(dialect);
    settings.max_list_chars = budget;
    let session = session_with_skills(settings, skills)?;
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

fn measure_policy_check(arguments: &Arguments, call: ToolCall) -> anyhow::Result<Samples> {
    /// The number of calls that are timed together, since a single call takes less time than reading the clock.
    const CALLS_PER_SAMPLE: u32 = 1_000;
    let mut settings = Settings::new(Dialect::Skillbox);
    settings.policy = PolicyKind::Restrict;
    let session = session_with_loaded_skills(settings)?;
    let (agent, (tool, input)) = (AgentName::default(), call.tool_and_input());
    let mut samples = Samples::default();
    for _ in 0..arguments.rounds {
        let mut batch = Samples::default();
        let allowed_calls = batch.time(|| {
            (0..CALLS_PER_SAMPLE)
                .filter(|_| session.wrap_tool_call(&agent, tool, &input).is_ok())
                .count()
        });
        ensure!(
            allowed_calls
                == if call.is_allowed() {
                    CALLS_PER_SAMPLE as usize
                } else {
                    0
                },
            "the policy returned an unexpected verdict"
        );
        samples.push(batch.median().unwrap_or_default() / CALLS_PER_SAMPLE);
    }
    Ok(samples)
}

fn measure_load(arguments: &Arguments) -> anyhow::Result<Samples> {
    let (_directory, catalog) = write_large_skill(40 << 10)?;
    let mut samples = Samples::default();
    for _ in 0..arguments.rounds {
        let session = sessions::start_session(&catalog);
        let input = serde_json::json!({"skill": "big"});
        let agent = AgentName::default();
        let reply = samples.time(|| session.call(&catalog, &agent, Default::default(), "skill_load", &input));
        ensure!(reply.is_ok(), "the skill was not loaded");
    }
    Ok(samples)
}
