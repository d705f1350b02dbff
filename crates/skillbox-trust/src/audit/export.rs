//! Exports records for other programs.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use skillbox_model::ErrorCode;

use super::log_files::{log_numbers, log_path, visit_lines};
use crate::TrustError;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The records as they are, one JSON object on each line.
    Ocsf,
    /// One line with the most important fields for each record.
    Csv,
}

const COLUMNS: [(&str, &str); 14] = [
    ("time_ms", "/time"),
    ("sequence", "/metadata/sequence"),
    ("host", "/device/hostname"),
    ("class", "/class_name"),
    ("activity", "/activity_name"),
    ("user", "/actor/user/name"),
    ("tenant", "/actor/user/org/name"),
    ("run_id", "/process/uid"),
    ("skill", "/unmapped/skill"),
    ("skill_digest", "/unmapped/skill_digest"),
    ("status_id", "/status_id"),
    ("status_code", "/status_code"),
    ("exit_code", "/exit_code"),
    ("command", "/process/cmd_line"),
];

/// Writes the records since a time, in milliseconds since 1970. Returns their number.
pub fn export_records(
    trust_dir: &Path,
    format: ExportFormat,
    since_ms: u64,
    output: &mut dyn Write,
) -> Result<u64, TrustError> {
    let directory = trust_dir.join("audit");
    let mut count = 0;
    let write_error = TrustError::io;
    if format == ExportFormat::Csv {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        writeln!(output, "{}", names.join(",")).map_err(write_error("write the export of", &directory))?;
    }
    for number in log_numbers(&directory)? {
        let path = log_path(&directory, number);
        let mut line_number = 0;
        visit_lines(&path, 0, |line, is_complete| {
            line_number += 1;
            if !is_complete {
                return Ok(false);
            }
            let record: Value = serde_json::from_slice(line).map_err(|error| TrustError::Malformed {
                code: ErrorCode::Storage,
                path: path.clone(),
                line: Some(line_number),
                problem: error.to_string(),
            })?;
            if record["time"].as_u64().unwrap_or_default() < since_ms {
                return Ok(true);
            }
            count += 1;
            let written = match format {
                ExportFormat::Ocsf => output.write_all(line).and_then(|()| output.write_all(b"\n")),
                ExportFormat::Csv => {
                    let cells: Vec<String> = COLUMNS
                        .iter()
                        .map(|(_, pointer)| csv_cell(record.pointer(pointer)))
                        .collect();
                    writeln!(output, "{}", cells.join(","))
                }
            };
            written.map_err(write_error("write the export of", &path))?;
            Ok(true)
        })?;
    }
    Ok(count)
}

/// A quoted cell. A text that a spreadsheet would execute gets an apostrophe.
fn csv_cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => return other.to_string(),
    };
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        "'"
    } else {
        ""
    };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// Calls `visit` with each record since a time, in milliseconds since 1970, the oldest first, until it returns false.
pub fn visit_records(trust_dir: &Path, since_ms: u64, visit: &mut dyn FnMut(Value) -> bool) -> Result<(), TrustError> {
    let directory = trust_dir.join("audit");
    if !directory.exists() {
        return Ok(());
    }
    let mut goes_on = true;
    for number in log_numbers(&directory)? {
        let path = log_path(&directory, number);
        let mut line_number = 0;
        visit_lines(&path, 0, |line, is_complete| {
            line_number += 1;
            if !is_complete {
                return Ok(false);
            }
            let record: Value = serde_json::from_slice(line).map_err(|error| TrustError::Malformed {
                code: ErrorCode::Storage,
                path: path.clone(),
                line: Some(line_number),
                problem: format!("{error}; see `skillbox audit verify`"),
            })?;
            if record["time"].as_u64().unwrap_or_default() >= since_ms {
                goes_on = visit(record);
            }
            Ok(goes_on)
        })?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}
