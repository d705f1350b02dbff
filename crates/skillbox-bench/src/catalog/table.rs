//! Prints the results as a table or as JSON.

use std::io::Write as _;

use serde_json::{Map, Value, json};

use super::measurements::Measurements;
use super::targets::{CatalogTarget, Unit};
use crate::samples::{Samples, millis, ratio};

/// Prints the table and the verdicts.
pub(super) fn print(measured: &Measurements, targets: &[CatalogTarget]) -> anyhow::Result<()> {
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
                let range = format!("{} – {}", format_millis(millis(low)), format_millis(millis(high)));
                writeln!(out, "  {name:<42}{:>9} ms{range:>20}", format_millis(millis(median)))?;
            }
            _ => writeln!(out, "  {name:<42}{:>12}", "not available")?,
        }
    }
    writeln!(out)?;
    if let Some(memory) = measured.memory {
        let bytes_per_skill = memory.growth / memory.skills.max(1);
        let metadata = memory.metadata / memory.skills.max(1);
        writeln!(
            out,
            "  memory: {bytes_per_skill} B per skill, of which {metadata} B are metadata\n"
        )?;
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
        if let (Some(peer_time), Some(cold_scan)) = (samples.median(), measured.cold_scan.median()) {
            writeln!(
                out,
                "  {name} takes {:.0} times as long as a cold scan",
                ratio(peer_time, cold_scan)
            )?;
        }
    }
    for peer in &measured.peers {
        if let Some(reason) = &peer.missing_reason {
            writeln!(out, "  {} was not measured: {reason}", peer.package)?;
        }
    }
    Ok(())
}

fn rows(measured: &Measurements) -> Vec<(&'static str, &Samples)> {
    let mut rows = vec![
        ("cold scan", &measured.cold_scan),
        ("cold scan of every fourth collection", &measured.quarter_scan),
        ("refresh after one edit, with watches", &measured.refresh_by_events),
        ("refresh after one edit, without watches", &measured.refresh_by_rescan),
        ("xargs cat of the same files", &measured.cat),
    ];
    rows.extend(measured.peers.iter().map(|peer| (peer.title, &peer.samples)));
    rows
}

fn format_millis(millis: f64) -> String {
    if millis < 10.0 {
        format!("{millis:.2}")
    } else {
        format!("{millis:.0}")
    }
}

/// Prints the results as one JSON object.
pub(super) fn print_json(measured: &Measurements, targets: &[CatalogTarget]) -> anyhow::Result<()> {
    let times = [
        ("cold_scan", &measured.cold_scan),
        ("cold_scan_of_a_part", &measured.quarter_scan),
        ("refresh_watched", &measured.refresh_by_events),
        ("refresh_rescan", &measured.refresh_by_rescan),
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
