//! Removes the values of secrets from everything that a run returns or records, besides its output streams.

use std::borrow::Cow;

use serde_json::Value;
use skillbox_executor::Redactor;
use skillbox_model::{RunReport, RunRequest};

/// The report without values, in whatever field a script could have put one: names of files, warnings, hosts.
pub(crate) fn redact_report(report: RunReport, redactor: &Redactor) -> RunReport {
    if redactor.is_empty() {
        return report;
    }
    let redacted = serde_json::to_value(&report)
        .ok()
        .map(|value| redact_value(value, redactor))
        .and_then(|value| serde_json::from_value(value).ok());
    redacted.unwrap_or_else(|| RunReport {
        // A value in a field that does not accept the replacement. The fields that a script controls accept any text.
        stdout: String::new(),
        stderr: String::new(),
        output_files: Vec::new(),
        primary_output: None,
        unchanged_files: Vec::new(),
        artifact_files: Vec::new(),
        refused_outputs: Vec::new(),
        staged_inputs: Vec::new(),
        network: None,
        hint: None,
        warnings: vec!["the report contained the value of a secret where it cannot be replaced".to_owned()],
        ..report
    })
}

/// The command of a request without values, for records.
pub(crate) fn redact_request<'r>(request: &'r RunRequest, redactor: &Redactor) -> Cow<'r, RunRequest> {
    if redactor.is_empty() {
        return Cow::Borrowed(request);
    }
    let redact = |text: &String| redactor.redact_text(text).into_owned();
    Cow::Owned(RunRequest {
        command: request.command.as_ref().map(redact),
        args: request.args.iter().map(redact).collect(),
        argv: request.argv.iter().map(redact).collect(),
        ..request.clone()
    })
}

fn redact_value(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact_text(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| redact_value(item, redactor)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (redactor.redact_text(&key).into_owned(), redact_value(value, redactor)))
            .collect(),
        other => other,
    }
}
