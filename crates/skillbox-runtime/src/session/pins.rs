//! Versions that a session resolved first and keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skillbox_model::RelPath;

/// For each artifact and destination, the version that the first run of the session got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins(BTreeMap<String, u64>);

impl Pins {
    /// The version kept for a name at a destination.
    pub fn get(&self, name: &str, to: &RelPath) -> Option<u64> {
        self.0.get(&key(name, to)).copied()
    }

    /// Keeps a version, unless one is kept already.
    pub fn keep(&mut self, name: &str, to: &RelPath, version: u64) {
        self.0.entry(key(name, to)).or_insert(version);
    }
}

fn key(name: &str, to: &RelPath) -> String {
    // Neither part can contain a NUL.
    format!("{name}\0{to}")
}
