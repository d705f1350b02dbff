//! The results as a table and as JSON.

use std::io::Write as _;

use serde_json::{Map, Value, json};

use super::measurements::Measurements;
use super::targets::{Target, Unit};
use crate::measure::{Samples, millis, ratio};

/// Prints the table and the verdicts.
pub(super) fn print(measured: &Measurements, targets: &[Target]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} skills with {:.0} MB of SKILL.md, warm page cache, medians of {} rounds\n",
        measured.skills,
        measured.bytes as f64 / 1e6,
        measured.rounds
    )?;
    writeln!(out, "  {:<42}{:>12}{:>20}", "", "p50", "range")?;
    for (name, samples) in rows(measured) {
        match (samples.median(), samples.range()) {
            (Some(median), Some((low, high))) => {
                let range = format!("{} – {}", shown(millis(low)), shown(millis(high)));
                writeln!(out, "  {name:<42}{:>9} ms{range:>20}", shown(millis(median)))?;
            }
            _ => writeln!(out, "  {name:<42}{:>12}", "not available")?,
        }
    }
    writeln!(out)?;
    if let Some(memory) = measured.memory {
        let each = memory.growth / memory.skills.max(1);
        let metadata = memory.metadata / memory.skills.max(1);
        writeln!(out, "  memory: {each} B a skill, {metadata} B of it metadata\n")?;
    }
    for target in targets {
        let verdict = if target.is_met() { "met" } else { "MISSED" };
        let measured = match target.unit {
            Unit::Ratio => format!("{:.4}x", target.measured),
            Unit::Bytes => format!("{} B", target.measured),
        };
        writeln!(out, "  {verdict:<8}{} ({measured})", target.description)?;
    }
    for (name, samples) in rows(measured)
        .into_iter()
        .filter(|(name, _)| name.starts_with("Python"))
    {
        if let (Some(theirs), Some(ours)) = (samples.median(), measured.cold.median()) {
            writeln!(
                out,
                "  {name} takes {:.0} times as long as our cold scan",
                ratio(theirs, ours)
            )?;
        }
    }
    for peer in &measured.peers {
        if let Some(reason) = &peer.missing {
            writeln!(out, "  {} was not measured: {reason}", peer.package)?;
        }
    }
    Ok(())
}

fn rows(measured: &Measurements) -> Vec<(&'static str, &Samples)> {
    let mut rows = vec![
        ("cold scan", &measured.cold),
        ("cold scan of every fourth collection", &measured.part),
        ("refresh after one edit, with watches", &measured.watched),
        ("refresh after one edit, without watches", &measured.rescan),
        ("xargs cat of the same files", &measured.cat),
    ];
    rows.extend(measured.peers.iter().map(|peer| (peer.title, &peer.samples)));
    rows
}

fn shown(millis: f64) -> String {
    if millis < 10.0 {
        format!("{millis:.2}")
    } else {
        format!("{millis:.0}")
    }
}

/// Prints the results as one JSON object.
pub(super) fn print_json(measured: &Measurements, targets: &[Target]) -> anyhow::Result<()> {
    let times = [
        ("cold_scan", &measured.cold),
        ("cold_scan_of_a_part", &measured.part),
        ("refresh_watched", &measured.watched),
        ("refresh_rescan", &measured.rescan),
        ("cat", &measured.cat),
    ];
    let peers = measured.peers.iter().map(|peer| (peer.package, &peer.samples));
    let times: Map<String, Value> = times
        .into_iter()
        .chain(peers)
        .map(|(name, samples)| (name.to_owned(), json!(samples.median().map(millis))))
        .collect();
    let targets: Vec<Value> = targets
        .iter()
        .map(|target| {
            json!({
                "name": target.name,
                "at_most": target.at_most,
                "measured": target.measured,
                "met": target.is_met(),
            })
        })
        .collect();
    let object = json!({
        "skills": measured.skills,
        "bytes": measured.bytes,
        "rounds": measured.rounds,
        "p50_ms": times,
        "memory": measured.memory,
        "targets": targets,
    });
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &object)?;
    writeln!(out)?;
    Ok(())
}
