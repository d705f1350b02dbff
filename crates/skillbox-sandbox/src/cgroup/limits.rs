//! The limits of one control group.

use serde::{Deserialize, Serialize};

/// The version of the control group interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

/// The limits of the control group of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// The version of the interface.
    pub version: CgroupVersion,
    /// Bytes of memory, swap included.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// CPU bandwidth, in thousandths of a core.
    pub cpu_quota_millis: Option<u32>,
    /// Whether CPU time is counted.
    pub count_cpu: bool,
}
