//! `skillbox read-properties`: a skill's frontmatter as the reference tool prints it.

use std::path::PathBuf;

use clap::Args;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_repository::strict;

use super::{Context, named_paths};
use crate::failure::Failure;
use crate::render::Terminal;

/// Print a skill's fields as JSON, as agentskills does
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox read-properties skills/csv-report",
    "skillbox read-properties skills/csv-report | jq -r .description",
))]
pub struct ReadPropertiesArgs {
    /// The skill's directory, or its SKILL.md
    path: PathBuf,
}

pub fn run(args: &ReadPropertiesArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    named_paths::check(std::slice::from_ref(&args.path))?;
    match strict::read_properties(&args.path) {
        Ok(json) => {
            terminal.exact_out(format!("{json}\n").as_bytes())?;
            Ok(ExitCode::OK)
        }
        Err(message) => reference_error(&message, context, terminal),
    }
}

/// An error in the reference's words; programs get our error object.
pub fn reference_error(message: &str, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    if context.as_json {
        return Err(Failure::new(ErrorCode::SkillUnreadable, message));
    }
    terminal.exact_err(format!("Error: {message}\n").as_bytes())?;
    Ok(ExitCode::BAD)
}
