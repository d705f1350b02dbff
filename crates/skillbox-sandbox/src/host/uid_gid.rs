//! A user id with a group id.

use serde::{Deserialize, Serialize};

/// A user id and a group id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UidGid {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}
