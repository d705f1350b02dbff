//! Making one catalogue of several sources: the last of a name wins, and what it hides stays visible.

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use skillbox_model::Diagnostic;

use crate::catalog::{Catalog, Shadowed};
use crate::discover::ScannedSource;
use crate::entry::SkillEntry;
use crate::place::What;
use crate::scan_note;
use crate::source::ScanOptions;

/// Positions by name. The names themselves are kept once, in the entries.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    positions: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl NameIndex {
    /// The position of `name`, where `name_at` tells the name at a position.
    pub(crate) fn find<'n>(&self, name: &str, name_at: impl Fn(usize) -> &'n str) -> Option<usize> {
        let hash = self.hasher.hash_one(name);
        let found = self
            .positions
            .find(hash, |position| name_at(*position as usize) == name);
        found.map(|position| *position as usize)
    }
}

/// Merges sources, low to high.
pub(crate) fn merge(sources: &[ScannedSource], options: &ScanOptions) -> Catalog {
    let places = sources.iter().map(|source| source.places.len()).sum();
    let mut merge = Merge::with_capacity(places);
    for source in sources {
        merge.source_begins = merge.entries.len();
        for place in &source.places {
            merge.diagnostics.extend(place.notes.iter().cloned());
            if let Some(entry) = place.skill() {
                merge.add(entry);
            }
        }
        merge.diagnostics.extend(limits_hit(source, options));
    }
    merge.finish()
}

/// A catalogue in the making.
#[derive(Default)]
struct Merge {
    entries: Vec<Arc<SkillEntry>>,
    /// Positions of those that a later one hides, in the order in which that came out.
    hidden: Vec<u32>,
    by_name: NameIndex,
    diagnostics: Vec<Diagnostic>,
    source_begins: usize,
}

impl Merge {
    fn with_capacity(skills: usize) -> Self {
        Self {
            entries: Vec::with_capacity(skills),
            by_name: NameIndex {
                positions: HashTable::with_capacity(skills),
                hasher: DefaultHashBuilder::default(),
            },
            ..Self::default()
        }
    }

    fn add(&mut self, entry: &Arc<SkillEntry>) {
        let position = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let NameIndex { positions, hasher } = &mut self.by_name;
        let name_at = |position: &u32| self.entries[*position as usize].name().as_str();
        let hash_of = |name: &str| hasher.hash_one(name);
        let name = entry.name().as_str();
        match positions.find_mut(hash_of(name), |other| name_at(other) == name) {
            Some(known) => {
                let loser = std::mem::replace(known, position);
                self.hidden.push(loser);
                if loser as usize >= self.source_begins {
                    let loser = &self.entries[loser as usize];
                    let note = scan_note::duplicate_name(name, entry.path(), loser.path());
                    self.diagnostics.push(note);
                }
            }
            None => {
                positions.insert_unique(hash_of(name), position, |other| hash_of(name_at(other)));
            }
        }
        self.entries.push(entry.clone());
    }

    fn finish(mut self) -> Catalog {
        // Of three of one name the last hides both others, not only the one before it.
        let at = |position: usize| &*self.entries[position];
        let shadowed = self.hidden.iter().map(|loser| {
            let loser = at(*loser as usize);
            let winner = self
                .by_name
                .find(loser.name().as_str(), |other| at(other).name().as_str());
            shadowed(loser, winner.map_or(loser, at))
        });
        let shadowed = shadowed.collect();
        self.close_gaps();
        Catalog::new(&self.entries, self.by_name, shadowed, self.diagnostics)
    }

    /// Takes the hidden skills out, and moves the positions of the others with them.
    fn close_gaps(&mut self) {
        if self.hidden.is_empty() {
            return;
        }
        self.hidden.sort_unstable();
        for position in self.by_name.positions.iter_mut() {
            let gaps_before = self.hidden.partition_point(|hidden| hidden < position);
            *position -= u32::try_from(gaps_before).unwrap_or(0);
        }
        let mut position = 0;
        self.entries.retain(|_| {
            position += 1;
            self.hidden.binary_search(&(position - 1)).is_err()
        });
    }
}

fn shadowed(loser: &SkillEntry, winner: &SkillEntry) -> Shadowed {
    Shadowed {
        name: loser.name().clone(),
        path: loser.path().to_owned(),
        source: loser.source_label().into(),
        scope: loser.scope(),
        by_path: winner.path().to_owned(),
        by_source: winner.source_label().into(),
        by_scope: winner.scope(),
    }
}

fn limits_hit(source: &ScannedSource, options: &ScanOptions) -> Vec<Diagnostic> {
    let cut: Vec<&Path> = source
        .places
        .iter()
        .filter_map(|place| match &place.what {
            What::Group { dir, cut: true, .. } => Some(&**dir),
            _ => None,
        })
        .collect();
    let mut notes = Vec::new();
    if let Some(first) = cut.first() {
        notes.push(scan_note::depth_limit(first, cut.len(), options.max_depth));
    }
    if source.cut_short {
        notes.push(scan_note::directory_limit(&source.info.root, options.max_directories));
    }
    notes
}
