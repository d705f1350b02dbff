//! The measured times and sizes.

use std::path::Path;
use std::time::Duration;

use super::memory::Memory;
use super::peers::{self, PythonTime};
use crate::measure::Samples;

/// All measured times and sizes.
#[derive(Default)]
pub(super) struct Measurements {
    pub(super) skills: usize,
    pub(super) bytes: u64,
    pub(super) rounds: usize,
    pub(super) cold: Samples,
    /// A cold scan of every fourth collection, and the number of skills in these.
    pub(super) part: Samples,
    pub(super) part_skills: usize,
    pub(super) rescan: Samples,
    pub(super) watched: Samples,
    pub(super) cat: Samples,
    pub(super) peers: Vec<PythonPeer>,
    pub(super) memory: Option<Memory>,
}

/// One of the Python parsers; its times are scaled to all skills.
pub(super) struct PythonPeer {
    pub(super) package: &'static str,
    pub(super) title: &'static str,
    pub(super) samples: Samples,
    pub(super) missing: Option<String>,
}

impl PythonPeer {
    pub(super) fn new(package: &'static str, title: &'static str) -> Self {
        Self {
            package,
            title,
            samples: Samples::default(),
            missing: None,
        }
    }

    /// Measures one round, unless the package is missing. `scale` is the ratio of all files to those in the list.
    pub(super) fn measure(&mut self, python: &Path, list: &Path, scale: f64) -> anyhow::Result<()> {
        if self.missing.is_some() {
            return Ok(());
        }
        match peers::parse_with_python(python, self.package, list)? {
            PythonTime::Took(time) => self.samples.push(Duration::from_secs_f64(time.as_secs_f64() * scale)),
            PythonTime::Missing(reason) => self.missing = Some(reason),
        }
        Ok(())
    }
}
