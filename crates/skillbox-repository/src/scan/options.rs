//! What a scan reads, its limits and its number of threads.

use std::num::NonZeroUsize;

use crate::skill::SkillLimits;

/// What a scan reads, its limits and its number of threads.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// The maximum number of levels below a source at which a skill is found.
    pub max_depth: u8,
    /// The maximum number of directories that are read in one source.
    pub max_directories: usize,
    /// The number of threads.
    pub threads: NonZeroUsize,
    /// Whether a missing name is taken from the directory, and a missing description from the first paragraph of the
    /// body.
    pub metadata_fallback: bool,
    /// How much of each skill is read.
    pub skill_limits: SkillLimits,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            max_depth: 6,
            max_directories: 100_000,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            metadata_fallback: false,
            skill_limits: SkillLimits::default(),
        }
    }
}
