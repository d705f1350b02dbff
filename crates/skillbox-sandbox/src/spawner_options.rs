//! The options of a spawner.

use serde::{Deserialize, Serialize};

use crate::host::UidGid;

/// The options of a spawner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerOptions {
    /// The user and group ids on the host under which scripts run if skillbox runs as root.
    pub script_ids: UidGid,
    /// The launches that the spawner accepts.
    pub kind: SpawnerKind,
    /// The maximum number of parked sandboxes; with 0 the spawner creates each sandbox when it is needed.
    pub max_parked: u8,
    /// Whether the spawner serves a single run, so that it prepares nothing for a second one.
    pub is_single_run: bool,
}

/// The launches that a spawner accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnerKind {
    /// Confined launches.
    Confining,
    /// Unconfined launches. Such a spawner enters no namespace, so its children are ordinary processes of the caller. A
    /// confining spawner cannot serve them for an ordinary user, because it cannot leave its user namespace again.
    Unconfined,
}

impl SpawnerOptions {
    /// The default user and group id of scripts: above every range that distributions and container engines assign.
    pub const DEFAULT_SCRIPT_ID: u32 = 1_900_001_000;

    /// The default of `max_parked`: enough for a burst on a small machine. A parked sandbox uses a few hundred KiB of
    /// memory.
    pub const DEFAULT_MAX_PARKED: u8 = 4;

    /// The options for a program that starts a single run.
    pub fn for_single_run() -> Self {
        Self {
            max_parked: 0,
            is_single_run: true,
            ..Self::default()
        }
    }

    /// The options for unconfined runs.
    pub fn unconfined() -> Self {
        Self {
            kind: SpawnerKind::Unconfined,
            ..Self::default()
        }
    }
}

impl Default for SpawnerOptions {
    fn default() -> Self {
        Self {
            script_ids: UidGid {
                uid: Self::DEFAULT_SCRIPT_ID,
                gid: Self::DEFAULT_SCRIPT_ID,
            },
            kind: SpawnerKind::Confining,
            max_parked: Self::DEFAULT_MAX_PARKED,
            is_single_run: false,
        }
    }
}
