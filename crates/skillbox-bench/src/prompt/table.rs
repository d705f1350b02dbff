//! Prints the results as a table or as JSON.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::deepagents::PeerOutcome;
use super::row::Row;

/// Prints the table and the verdicts.
pub(super) fn print(rows: &[Row]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut group = "";
    for row in rows {
        if row.group != group {
            let gap = if group.is_empty() { "" } else { "\n" };
            group = &row.group;
            writeln!(out, "{gap}{group:<37}{:>11}{:>11}{:>11}", "median", "fastest", "target")?;
        }
        let median = row.samples.median().unwrap_or_default();
        let (fastest, _) = row.samples.range().unwrap_or_default();
        let verdict = match row.target {
            Some(target) if median <= target => format!("{:>11}  met", format_time(target)),
            Some(target) => format!("{:>11}  MISSED", format_time(target)),
            None => String::new(),
        };
        let (median, fastest) = (format_time(median), format_time(fastest));
        writeln!(out, "  {:<35}{median:>11}{fastest:>11}{verdict}", row.label)?;
        match &row.peer {
            Some(PeerOutcome::Measured { version, median }) => {
                let label = format!("  the same in deepagents {version}");
                writeln!(out, "  {label:<35}{:>11}", format_time(*median))?;
            }
            Some(PeerOutcome::Missing(reason)) => writeln!(out, "    not compared with deepagents: {reason}")?,
            None => {}
        }
    }
    Ok(())
}

/// Prints the results as JSON, in microseconds.
pub(super) fn print_json(rows: &[Row]) -> anyhow::Result<()> {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let row = |row: &Row| {
        let median = row.samples.median();
        json!({
            "what": format!("{}, {}", row.group, row.label),
            "median_us": median.map(micros),
            "target_us": row.target.map(micros),
            "met": median.zip(row.target).map(|(median, target)| median <= target),
            "deepagents_us": match &row.peer {
                Some(PeerOutcome::Measured { median, .. }) => json!(micros(*median)),
                _ => Value::Null,
            },
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}

fn format_time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1_000.0 {
        format!("{micros:.2} µs")
    } else {
        format!("{:.2} ms", micros / 1_000.0)
    }
}
