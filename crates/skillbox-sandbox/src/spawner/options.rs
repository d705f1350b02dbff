//! How a spawner works.

use serde::{Deserialize, Serialize};

use crate::plan::Ids;

/// How a spawner works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerOptions {
    /// The ids on the host that scripts run with when skillbox is started by root.
    pub script: Ids,
    /// What it can launch.
    pub kind: SpawnerKind,
    /// How many sandboxes may be kept parked for runs to come; with 0 each is made when it is asked for.
    pub slots: u8,
    /// There will be one run: nothing is made ahead for another.
    pub one_shot: bool,
}

/// What a spawner can launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnerKind {
    /// Everything with isolation.
    Confining,
    /// Unconfined runs. Such a spawner enters no namespace, so that its children are the caller's own processes: an
    /// ordinary user's other spawner cannot leave its user namespace any more.
    Plain,
}

impl SpawnerOptions {
    /// An id above every range that distributions and container engines give out.
    pub const SCRIPT_ID: u32 = 1_900_001_000;

    /// Enough for a burst on a small machine; each takes a few hundred KiB.
    pub const DEFAULT_SLOTS: u8 = 4;

    /// For a program that makes one run.
    pub fn one_shot() -> Self {
        Self {
            slots: 0,
            one_shot: true,
            ..Self::default()
        }
    }

    /// For unconfined runs.
    pub fn plain() -> Self {
        Self {
            kind: SpawnerKind::Plain,
            ..Self::default()
        }
    }
}

impl Default for SpawnerOptions {
    fn default() -> Self {
        Self {
            script: Ids {
                uid: Self::SCRIPT_ID,
                gid: Self::SCRIPT_ID,
            },
            kind: SpawnerKind::Confining,
            slots: Self::DEFAULT_SLOTS,
            one_shot: false,
        }
    }
}
