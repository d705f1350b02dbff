//! `skillbox validate`: the reference tool's results, or with `--lenient` our own diagnostics.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use skillbox_model::ExitCode;
use skillbox_repository::strict;

use super::output::print_output;
use super::{path_arguments, validate_lenient};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;

/// Validate skills like the reference tool `agentskills`
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox validate skills/csv-report       one skill",
    "skillbox validate skills/*                many skills",
    "skillbox validate --lenient skills        all skills, with hints",
))]
pub struct ValidateArgs {
    /// Skill directory or SKILL.md; with --lenient also a directory of skills
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Report how the catalog loads the skills, with excerpts and hints
    #[arg(long)]
    lenient: bool,
}

#[derive(Serialize)]
struct ValidationResults {
    valid: bool,
    results: Vec<ValidationResult>,
}

#[derive(Serialize)]
struct ValidationResult {
    path: String,
    valid: bool,
    errors: Vec<String>,
}

pub fn run(args: &ValidateArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    path_arguments::check_paths(&args.paths)?;
    if args.lenient {
        return print_output(&validate_lenient::run(&args.paths), context, terminal);
    }
    let mut results = ValidationResults {
        valid: true,
        results: Vec::new(),
    };
    for path in &args.paths {
        let errors = strict::validate(path);
        let path = strict::strip_terminal_escapes(&strict::skill_directory(path).to_string_lossy());
        let result = ValidationResult {
            path,
            valid: errors.is_empty(),
            errors,
        };
        if !context.as_json {
            print_result(&result, terminal)?;
        }
        results.valid &= result.valid;
        results.results.push(result);
    }
    if context.as_json {
        terminal.print_json(&results)?;
    }
    Ok(if results.valid { ExitCode::OK } else { ExitCode::FAILURE })
}

/// Byte for byte as the reference tool: success on stdout, failure on stderr.
fn print_result(result: &ValidationResult, terminal: &mut Terminal) -> std::io::Result<()> {
    if result.valid {
        return terminal.write_stdout(format!("Valid skill: {}\n", result.path).as_bytes());
    }
    let mut text = format!("Validation failed for {}:\n", result.path);
    for error in &result.errors {
        text.push_str(&format!("  - {error}\n"));
    }
    terminal.write_stderr(text.as_bytes())
}
