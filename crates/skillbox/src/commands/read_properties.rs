//! `skillbox read-properties`: the frontmatter of a skill, as the reference tool prints it.

use std::path::PathBuf;

use clap::Args;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_repository::strict;

use super::path_arguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;

/// Print the frontmatter as JSON like `agentskills`
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox read-properties skills/csv-report",
    "skillbox read-properties skills/csv-report | jq -r .description",
))]
pub struct ReadPropertiesArgs {
    /// Skill directory or SKILL.md
    path: PathBuf,
}

pub fn run(args: &ReadPropertiesArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    path_arguments::check_paths(std::slice::from_ref(&args.path))?;
    match strict::read_properties(&args.path) {
        Ok(json) => {
            terminal.write_stdout(format!("{json}\n").as_bytes())?;
            Ok(ExitCode::OK)
        }
        Err(message) => print_reference_error(&message, context, terminal),
    }
}

/// Prints an error as the reference tool does, or with `--json` as our error object.
pub fn print_reference_error(message: &str, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    if context.as_json {
        return Err(Failure::new(ErrorCode::SkillUnreadable, message));
    }
    terminal.write_stderr(format!("Error: {message}\n").as_bytes())?;
    Ok(ExitCode::FAILURE)
}
