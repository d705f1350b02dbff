//! What one attempt of a job led to.

use skillbox_model::{EndedBy, ErrorBody, RunOutcome, RunReport};
use skillbox_runtime::RunError;

use crate::cause::FailureCause;
use crate::result_line::JobStatus;

const MAX_REASON_CHARS: usize = 200;

/// The outcome of one attempt.
#[derive(Debug)]
pub(crate) struct JobOutcome {
    /// Why the attempt failed; none if it ended well.
    pub failure: Option<(FailureCause, String)>,
    pub report: Option<RunReport>,
    pub error: Option<ErrorBody>,
}

impl JobOutcome {
    /// The outcome of a run that has a report.
    pub fn from_report(report: RunReport, export_failures: &[String]) -> Self {
        let outcome = report.outcome();
        let failure = match (outcome.ended_by, outcome.exit_code, export_failures.first()) {
            (EndedBy::Exit, Some(0), None) => None,
            (EndedBy::Exit, Some(0), Some(failure)) => Some((FailureCause::Export, one_line(failure))),
            _ => Some((FailureCause::from_end(outcome.ended_by), failure_reason(&report))),
        };
        Self {
            failure,
            report: Some(report),
            error: None,
        }
    }

    /// The outcome of a run that skillbox refused, or that failed in skillbox.
    pub fn from_error(error: &RunError) -> Self {
        let body = error.body();
        let field = body
            .field
            .as_ref()
            .map_or_else(String::new, |field| format!("{field}: "));
        Self {
            failure: Some((
                FailureCause::from_error(body.code),
                one_line(&format!("{}: {field}{}", body.code, body.message)),
            )),
            report: None,
            error: Some(body),
        }
    }

    pub fn status(&self) -> JobStatus {
        match self.failure {
            None => JobStatus::Ok,
            Some(_) => JobStatus::Failed,
        }
    }
}

/// What ended the command, and the last line that it wrote to stderr.
fn failure_reason(report: &RunReport) -> String {
    let end = match report.outcome() {
        RunOutcome {
            ended_by: EndedBy::Exit,
            exit_code: Some(code),
            ..
        } => format!("exit code {code}"),
        RunOutcome {
            ended_by: EndedBy::Signal,
            signal: Some(signal),
            ..
        } => format!("signal {signal}"),
        outcome => outcome.ended_by.as_str().to_owned(),
    };
    let last_line = report.stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    match last_line.or(report.hint.as_deref()) {
        Some(text) => one_line(&format!("{end}: {text}")),
        None => end,
    }
}

/// The text without control characters, and shortened.
fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = clean.take(MAX_REASON_CHARS).collect();
    if text.chars().count() > MAX_REASON_CHARS {
        line.push('…');
    }
    line
}
