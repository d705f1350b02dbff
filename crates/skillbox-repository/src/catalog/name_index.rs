//! Maps the names of skills to the positions of their entries.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Maps names to positions. The names are stored only in the entries: callers pass a function that returns them.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    positions: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl NameIndex {
    pub(crate) fn with_capacity(names: usize) -> Self {
        Self {
            positions: HashTable::with_capacity(names),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Returns the position of `name`. `name_at` returns the name at a position.
    pub(crate) fn find<'n>(&self, name: &str, name_at: impl Fn(usize) -> &'n str) -> Option<usize> {
        let hash = self.hasher.hash_one(name);
        let found = self
            .positions
            .find(hash, |position| name_at(*position as usize) == name);
        found.map(|position| *position as usize)
    }

    /// Sets the position of `name`, and returns its previous position.
    pub(crate) fn insert<'n>(&mut self, name: &str, position: u32, name_at: impl Fn(usize) -> &'n str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        match self.positions.find_mut(hash, |other| name_at(*other as usize) == name) {
            Some(current) => Some(std::mem::replace(current, position)),
            None => {
                let hash_of = |other: &u32| self.hasher.hash_one(name_at(*other as usize));
                self.positions.insert_unique(hash, position, hash_of);
                None
            }
        }
    }

    /// Adjusts the positions after the entries at the sorted positions `removed` were removed.
    pub(crate) fn close_gaps(&mut self, removed: &[u32]) {
        for position in self.positions.iter_mut() {
            let gaps_before = removed.partition_point(|removed| removed < position);
            *position -= u32::try_from(gaps_before).unwrap_or(0);
        }
    }
}
