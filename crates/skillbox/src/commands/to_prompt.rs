//! `skillbox to-prompt`: the `<available_skills>` block of the reference tool.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use skillbox_model::ExitCode;
use skillbox_repository::strict;

use super::read_properties::reference_error;
use super::{Context, named_paths};
use crate::failure::Failure;
use crate::render::Terminal;

/// Print the <available_skills> block, as agentskills does
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox to-prompt skills/*",
    "skillbox to-prompt skills/csv-report skills/text-stats >> system-prompt.txt",
))]
pub struct ToPromptArgs {
    /// Skill directories, or their SKILL.md, in the order of the prompt
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Prompt {
    prompt: String,
}

pub fn run(args: &ToPromptArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    named_paths::check(&args.paths)?;
    match strict::to_prompt(&args.paths) {
        Ok(prompt) if context.as_json => terminal.json(&Prompt { prompt })?,
        Ok(prompt) => terminal.exact_out(format!("{prompt}\n").as_bytes())?,
        Err(message) => return reference_error(&message, context, terminal),
    }
    Ok(ExitCode::OK)
}
