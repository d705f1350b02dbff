//! `skillbox validate`: the reference tool's verdicts, or with `--lenient` our own findings.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use skillbox_model::ExitCode;
use skillbox_repository::strict;

use super::{Context, lenient, named_paths, show};
use crate::failure::Failure;
use crate::render::Terminal;

/// Check skills against the specification, as agentskills does
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox validate skills/csv-report       one skill",
    "skillbox validate skills/*                many",
    "skillbox validate --lenient skills        everything below, with excerpts and hints",
))]
pub struct ValidateArgs {
    /// Skill directories, or their SKILL.md; with --lenient also directories of skills
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Say what the catalogue makes of them, with places, excerpts and hints
    #[arg(long)]
    lenient: bool,
}

#[derive(Serialize)]
struct Verdicts {
    valid: bool,
    results: Vec<Verdict>,
}

#[derive(Serialize)]
struct Verdict {
    path: String,
    valid: bool,
    errors: Vec<String>,
}

pub fn run(args: &ValidateArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    named_paths::check(&args.paths)?;
    if args.lenient {
        return show(&lenient::run(&args.paths), context, terminal);
    }
    let mut verdicts = Verdicts {
        valid: true,
        results: Vec::new(),
    };
    for path in &args.paths {
        let errors = strict::validate(path);
        let path = strict::without_escapes(&strict::skill_path(path).to_string_lossy());
        let verdict = Verdict {
            path,
            valid: errors.is_empty(),
            errors,
        };
        if !context.as_json {
            tell(&verdict, terminal)?;
        }
        verdicts.valid &= verdict.valid;
        verdicts.results.push(verdict);
    }
    if context.as_json {
        terminal.json(&verdicts)?;
    }
    Ok(if verdicts.valid { ExitCode::OK } else { ExitCode::BAD })
}

/// Byte for byte like the reference: success on stdout, failure on stderr.
fn tell(verdict: &Verdict, terminal: &mut Terminal) -> std::io::Result<()> {
    if verdict.valid {
        return terminal.exact_out(format!("Valid skill: {}\n", verdict.path).as_bytes());
    }
    let mut text = format!("Validation failed for {}:\n", verdict.path);
    for error in &verdict.errors {
        text.push_str(&format!("  - {error}\n"));
    }
    terminal.exact_err(text.as_bytes())
}
