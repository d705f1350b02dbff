//! The targets of the catalog, and whether they are met.

use anyhow::Context;

use super::measurements::Measurements;
use crate::measure::ratio;

/// One target.
pub(super) struct Target {
    /// The target in words.
    pub(super) description: &'static str,
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) at_most: f64,
    pub(super) measured: f64,
    pub(super) unit: Unit,
}

/// The unit of a number.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Ratio,
    Bytes,
}

impl Target {
    pub(super) fn is_met(&self) -> bool {
        self.measured <= self.at_most
    }
}

/// Compares the measurements with the targets.
pub(super) fn evaluate(measured: &Measurements) -> anyhow::Result<Vec<Target>> {
    let cold = measured.cold.median().context("no round was measured")?;
    let cat = measured.cat.median().context("no round was measured")?;
    let watched = measured.watched.median().context("no round was measured")?;
    let part = measured.part.median().context("no round was measured")?;
    let memory = measured.memory.context("no memory was measured")?;
    let part_of_skills = measured.part_skills as f64 / measured.skills as f64;
    Ok(vec![
        Target {
            description: "a cold scan takes at most as long as `cat`",
            name: "cold_scan_to_cat",
            at_most: 1.0,
            measured: ratio(cold, cat),
            unit: Unit::Ratio,
        },
        Target {
            description: "a refresh after one edit takes at most 1/20 of a cold scan",
            name: "refresh_to_cold_scan",
            at_most: 0.05,
            measured: ratio(watched, cold),
            unit: Unit::Ratio,
        },
        Target {
            description: "a skill takes at most 1.5 KiB beyond its metadata",
            name: "bytes_beyond_metadata",
            at_most: 1536.0,
            measured: memory.beyond_metadata() as f64,
            unit: Unit::Bytes,
        },
        Target {
            // The margin of one half is for fixed costs and a busy machine.
            description: "four times the skills take four times the time",
            name: "growth_beyond_linear",
            at_most: 1.5,
            measured: ratio(cold, part) * part_of_skills,
            unit: Unit::Ratio,
        },
    ])
}
