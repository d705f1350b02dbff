//! The targets of the subcommand `catalog`, and whether they are met.

use anyhow::Context;

use super::measurements::Measurements;
use crate::samples::ratio;

/// A target with its measured number.
pub(super) struct CatalogTarget {
    /// The target in words.
    pub(super) description: &'static str,
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) at_most: f64,
    pub(super) measured: f64,
    pub(super) unit: Unit,
}

/// The unit of the measured number.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Ratio,
    Bytes,
}

impl CatalogTarget {
    pub(super) fn is_met(&self) -> bool {
        self.measured <= self.at_most
    }
}

/// Compares the measurements with the targets.
pub(super) fn evaluate(measured: &Measurements) -> anyhow::Result<Vec<CatalogTarget>> {
    let cold_scan = measured.cold_scan.median().context("no round was measured")?;
    let cat = measured.cat.median().context("no round was measured")?;
    let refresh_by_events = measured.refresh_by_events.median().context("no round was measured")?;
    let quarter_scan = measured.quarter_scan.median().context("no round was measured")?;
    let memory = measured.memory.context("no memory was measured")?;
    let quarter_share = measured.quarter_skills as f64 / measured.skills as f64;
    Ok(vec![
        CatalogTarget {
            description: "a cold scan takes at most as long as `cat`",
            name: "cold_scan_to_cat",
            at_most: 1.0,
            measured: ratio(cold_scan, cat),
            unit: Unit::Ratio,
        },
        CatalogTarget {
            description: "a refresh after one edit takes at most 1/20 of a cold scan",
            name: "refresh_to_cold_scan",
            at_most: 0.05,
            measured: ratio(refresh_by_events, cold_scan),
            unit: Unit::Ratio,
        },
        CatalogTarget {
            description: "a skill takes at most 1.5 KiB beyond its metadata",
            name: "bytes_beyond_metadata",
            at_most: 1536.0,
            measured: memory.beyond_metadata() as f64,
            unit: Unit::Bytes,
        },
        CatalogTarget {
            // The margin of 50 % allows for fixed costs and a busy machine.
            description: "four times the skills take four times the time",
            name: "growth_beyond_linear",
            at_most: 1.5,
            measured: ratio(cold_scan, quarter_scan) * quarter_share,
            unit: Unit::Ratio,
        },
    ])
}
