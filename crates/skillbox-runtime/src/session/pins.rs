//! Pinned artifact versions of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skillbox_model::RelPath;

/// For each artifact and destination, the version that the first run with a pinned input resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins(BTreeMap<String, u64>);

impl Pins {
    /// The version pinned for a name at a destination.
    pub fn get(&self, name: &str, destination: &RelPath) -> Option<u64> {
        self.0.get(&key(name, destination)).copied()
    }

    /// Pins a version, unless one is pinned already.
    pub fn pin(&mut self, name: &str, destination: &RelPath, version: u64) {
        self.0.entry(key(name, destination)).or_insert(version);
    }
}

fn key(name: &str, destination: &RelPath) -> String {
    // Neither part can contain NUL.
    format!("{name}\0{destination}")
}
