//! What was measured, for people and for programs.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::Row;
use super::deepagents::PeerTime;

/// Prints a table and the verdicts.
pub(super) fn print(rows: &[Row]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for row in rows {
        let median = row.samples.median().unwrap_or_default();
        let (low, high) = row.samples.range().unwrap_or_default();
        let verdict = match row.target {
            Some(target) if median <= target => format!("target {}: met", shown(target)),
            Some(target) => format!("target {}: MISSED", shown(target)),
            None => String::new(),
        };
        let (median, low, high) = (shown(median), shown(low), shown(high));
        writeln!(out, "{:58} {median:>10}  ({low} to {high})  {verdict}", row.what)?;
        match &row.peer {
            Some(PeerTime::Took(time)) => writeln!(out, "{:58} {:>10}", "  the same by deepagents", shown(*time))?,
            Some(PeerTime::Missing(reason)) => writeln!(out, "  deepagents is not there to compare with: {reason}")?,
            None => {}
        }
    }
    Ok(())
}

/// Prints the same as JSON, in microseconds.
pub(super) fn print_json(rows: &[Row]) -> anyhow::Result<()> {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let row = |row: &Row| {
        let median = row.samples.median();
        json!({
            "what": row.what,
            "median_us": median.map(micros),
            "target_us": row.target.map(micros),
            "met": median.zip(row.target).map(|(median, target)| median <= target),
            "deepagents_us": match &row.peer {
                Some(PeerTime::Took(time)) => json!(micros(*time)),
                _ => Value::Null,
            },
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}

fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1_000.0 {
        format!("{micros:.2} µs")
    } else {
        format!("{:.2} ms", micros / 1_000.0)
    }
}
