//! Finds the hint of a run, or none.

use skillbox_model::{EndedBy, Layer};

use super::finished_run::FinishedRun;
use super::stderr_patterns::{Cause, Finding, find_cause};
use super::{cause_text, limit_text};

/// The number of bytes at the end of stderr that are searched. The longest stack traces of Node are about 2 KiB.
const SEARCHED_BYTES: usize = 8 << 10;

/// The exit codes of a shell for a program that cannot be executed, and for one that does not exist.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// A hint for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    /// One sentence or two: what happened, and what changes it.
    pub text: String,
    /// Whether a package of a language is missing.
    pub is_missing_package: bool,
}

/// Finds the hint of a run. A run that succeeded or was cancelled has none.
pub(crate) fn find_hint(run: &FinishedRun<'_>) -> Option<Hint> {
    let limit_hint = |text| {
        Some(Hint {
            text,
            is_missing_package: false,
        })
    };
    match run.outcome.ended_by {
        EndedBy::Cancelled => return None,
        EndedBy::Timeout => return limit_hint(limit_text::wall(run)),
        EndedBy::Memory => return limit_hint(limit_text::memory(run)),
        EndedBy::Cpu => return limit_hint(limit_text::cpu(run)),
        EndedBy::Pids => return limit_hint(limit_text::processes(run)),
        EndedBy::Output => return limit_hint(limit_text::output(run)),
        EndedBy::Disk => return limit_hint(limit_text::disk(run, end_of(run.stderr))),
        EndedBy::Exit | EndedBy::Signal => {}
    }
    // The files, programs and addresses of an unconfined run are those of the host.
    if run.outcome.exit_code == Some(0) || !run.is_requested(Layer::MountNamespace) {
        return None;
    }
    let finding = find_cause(end_of(run.stderr)).or_else(|| cause_of_exit_code(run))?;
    let finding = match (finding.cause, run.outcome.exit_code) {
        // A shell says "Permission denied" both for a file without the execute bit and for a file it cannot open.
        (Cause::PermissionDenied, Some(NOT_EXECUTABLE)) => Finding {
            cause: Cause::NotExecutable,
            ..finding
        },
        _ => finding,
    };
    Some(Hint {
        text: cause_text::text(&finding, run)?,
        is_missing_package: matches!(finding.cause, Cause::PythonModule | Cause::NodeModule),
    })
}

/// The cause of a run that failed before its program could write anything.
fn cause_of_exit_code<'a>(run: &FinishedRun<'a>) -> Option<Finding<'a>> {
    let cause = match run.outcome.exit_code {
        Some(NOT_FOUND) if run.stderr.is_empty() => Cause::MissingProgram,
        Some(NOT_EXECUTABLE) if run.stderr.is_empty() => Cause::NotExecutable,
        _ => return None,
    };
    Some(Finding {
        cause,
        subject: run.program,
    })
}

/// The end of a text, from a character boundary on.
fn end_of(text: &str) -> &str {
    let start = text.len().saturating_sub(SEARCHED_BYTES);
    let start = (start..=text.len())
        .find(|index| text.is_char_boundary(*index))
        .unwrap_or(0);
    &text[start..]
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
