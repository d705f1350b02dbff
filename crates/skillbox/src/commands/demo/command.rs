//! The steps of the tour, in order.

use clap::Args;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_repository::{BUILT_IN_SKILLS, Source};
use skillbox_sandbox::SpawnerOptions;

use super::catalog_steps::open_catalog;
use super::tour::{Tour, storage_failure};
use super::unpack::unpack_skills;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Terminal, Tone};
use crate::runtime_setup;

/// Take a guided tour; no setup needed
#[derive(Args, Debug)]
#[command(after_help = crate::examples!("skillbox demo", "skillbox demo | less"))]
pub struct DemoArgs {}

pub fn run(context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    // The spawner is forked first, while the process is small and has one thread.
    let spawner = runtime_setup::fork_spawner(SpawnerOptions::default());
    let mut tour = Tour::new(terminal, context.as_json);
    tour.print_introduction()?;
    let built_in = open_catalog(Source::Embedded(&BUILT_IN_SKILLS));
    let directory = tempfile::tempdir().map_err(|error| storage_failure("a temporary directory", &error))?;
    let skills = directory.path().join("skills");
    tour.show_paths_relative_to(directory.path());

    tour.list_skills(&built_in)?;
    tour.show_one_skill(&built_in)?;
    tour.search_skills(&built_in)?;
    let paths = unpack_skills(&built_in, &skills)?;
    tour.validate_skills(&paths)?;
    tour.explain_mistakes(&skills, built_in.len())?;
    tour.disclose_to_agent(runtime_setup::open_built_in(None, directory.path())?, &built_in)?;
    let sandboxed = spawner.and_then(|spawner| tour.run_in_sandbox(spawner, directory.path()));
    sandboxed.or_else(|failure| report_missing_sandbox(&mut tour, failure))?;
    tour.finish()?;
    Ok(ExitCode::OK)
}

/// On a host that cannot isolate a script, the demo runs none and succeeds. Any other failure fails the demo.
fn report_missing_sandbox(tour: &mut Tour<'_>, failure: Failure) -> Result<(), Failure> {
    if !matches!(
        failure.code(),
        ErrorCode::IsolationUnavailable | ErrorCode::ExecutorUnavailable
    ) {
        return Err(failure);
    }
    tour.print(|page| {
        page.blank_line();
        page.paragraph(
            2,
            Tone::Warning,
            "This host cannot isolate scripts, so the demo runs none.",
        );
        page.paragraph(2, Tone::Plain, failure.message());
        page.paragraph(2, Tone::Hint, "run `skillbox doctor` for the cause and the fix");
    })
}
