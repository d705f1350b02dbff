//! The measurements of the subcommand `catalog`.

use std::path::Path;
use std::time::Duration;

use super::memory::CatalogMemory;
use super::peers::{self, PythonOutcome};
use crate::samples::Samples;

/// All measured times and sizes.
#[derive(Default)]
pub(super) struct Measurements {
    pub(super) skills: usize,
    /// The total size of the SKILL.md files.
    pub(super) bytes: u64,
    pub(super) rounds: usize,
    pub(super) cold_scan: Samples,
    /// A cold scan of every fourth collection.
    pub(super) quarter_scan: Samples,
    /// The number of skills in these collections.
    pub(super) quarter_skills: usize,
    /// A refresh after one edit, without watches.
    pub(super) refresh_by_rescan: Samples,
    /// A refresh after one edit, with watches.
    pub(super) refresh_by_events: Samples,
    pub(super) cat: Samples,
    pub(super) peers: Vec<PythonPeer>,
    pub(super) memory: Option<CatalogMemory>,
}

/// A Python parser with its times, scaled to all skills.
pub(super) struct PythonPeer {
    pub(super) package: &'static str,
    pub(super) title: &'static str,
    pub(super) samples: Samples,
    /// Why the package cannot be measured.
    pub(super) missing_reason: Option<String>,
}

impl PythonPeer {
    pub(super) fn new(package: &'static str, title: &'static str) -> Self {
        Self {
            package,
            title,
            samples: Samples::default(),
            missing_reason: None,
        }
    }

    /// Measures one round, unless the package is missing. `scale` is the ratio of all files to those in the list.
    pub(super) fn measure(&mut self, python: &Path, list: &Path, scale: f64) -> anyhow::Result<()> {
        if self.missing_reason.is_some() {
            return Ok(());
        }
        match peers::parse_with_python(python, self.package, list)? {
            PythonOutcome::Measured(time) => self.samples.push(Duration::from_secs_f64(time.as_secs_f64() * scale)),
            PythonOutcome::Missing(reason) => self.missing_reason = Some(reason),
        }
        Ok(())
    }
}
