//! What the catalogue promises, and whether this run kept it.

use anyhow::Context;

use super::Measured;
use crate::measure::ratio;

/// One promise.
pub(super) struct Target {
    /// What is promised, for people.
    pub(super) promise: &'static str,
    /// A word for programs.
    pub(super) name: &'static str,
    pub(super) at_most: f64,
    pub(super) measured: f64,
    pub(super) unit: Unit,
}

/// How a number is shown.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Times,
    Bytes,
}

impl Target {
    pub(super) fn is_met(&self) -> bool {
        self.measured <= self.at_most
    }
}

/// Holds what was measured against the promises.
pub(super) fn judge(measured: &Measured) -> anyhow::Result<Vec<Target>> {
    let cold = measured.cold.median().context("no round was measured")?;
    let cat = measured.cat.median().context("no round was measured")?;
    let watched = measured.watched.median().context("no round was measured")?;
    let part = measured.part.median().context("no round was measured")?;
    let memory = measured.memory.context("no memory was measured")?;
    let part_of_skills = measured.part_skills as f64 / measured.skills as f64;
    Ok(vec![
        Target {
            promise: "a cold scan takes at most as long as `cat`",
            name: "cold_scan_to_cat",
            at_most: 1.0,
            measured: ratio(cold, cat),
            unit: Unit::Times,
        },
        Target {
            promise: "a refresh after one edit takes at most 1/20 of a cold scan",
            name: "refresh_to_cold_scan",
            at_most: 0.05,
            measured: ratio(watched, cold),
            unit: Unit::Times,
        },
        Target {
            promise: "a skill takes at most 1.5 KiB beyond its metadata",
            name: "bytes_beyond_metadata",
            at_most: 1536.0,
            measured: memory.beyond_metadata() as f64,
            unit: Unit::Bytes,
        },
        Target {
            // Half as much again leaves room for what does not grow at all, and for a busy machine.
            promise: "four times the skills take four times the time",
            name: "growth_beyond_linear",
            at_most: 1.5,
            measured: ratio(cold, part) * part_of_skills,
            unit: Unit::Times,
        },
    ])
}
