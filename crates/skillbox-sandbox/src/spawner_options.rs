//! The options that a spawner is started with.

use serde::{Deserialize, Serialize};

use crate::host::Ids;

/// The options that a spawner is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerOptions {
    /// The ids on the host that scripts run with when root starts skillbox.
    pub script: Ids,
    /// The launches that the spawner accepts.
    pub kind: SpawnerKind,
    /// How many sandboxes may be parked for later runs; with 0 the spawner creates each sandbox when it is needed.
    pub slots: u8,
    /// Whether there is a single run, so that nothing is prepared for a second one.
    pub one_shot: bool,
}

/// The launches that a spawner accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnerKind {
    /// Launches with isolation.
    Confining,
    /// Unconfined launches. Such a spawner enters no namespace, so its children are ordinary processes of the caller.
    /// The confining spawner of an ordinary user cannot leave its user namespace again, hence the second kind.
    Plain,
}

impl SpawnerOptions {
    /// The default script id: above every range that distributions and container engines assign.
    pub const SCRIPT_ID: u32 = 1_900_001_000;

    /// The default number of slots: enough for a burst on a small machine. Each takes a few hundred KiB.
    pub const DEFAULT_SLOTS: u8 = 4;

    /// The options for a program with a single run.
    pub fn one_shot() -> Self {
        Self {
            slots: 0,
            one_shot: true,
            ..Self::default()
        }
    }

    /// The options for unconfined runs.
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
