//! `skillbox to-prompt`: the `<available_skills>` block of the reference tool.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use skillbox_model::ExitCode;
use skillbox_repository::strict;

use super::path_arguments;
use super::read_properties::print_reference_error;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;

/// Print the <available_skills> block like `agentskills`
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox to-prompt skills/*",
    "skillbox to-prompt skills/csv-report skills/text-stats >> system-prompt.txt",
))]
pub struct ToPromptArgs {
    /// Skill directory or SKILL.md, in the order of the prompt
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Prompt {
    prompt: String,
}

pub fn run(args: &ToPromptArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    path_arguments::check_paths(&args.paths)?;
    match strict::to_prompt(&args.paths) {
        Ok(prompt) if context.as_json => terminal.print_json(&Prompt { prompt })?,
        Ok(prompt) => terminal.write_stdout(format!("{prompt}\n").as_bytes())?,
        Err(message) => return print_reference_error(&message, context, terminal),
    }
    Ok(ExitCode::OK)
}
