//! The skills that can be used at one moment, and what is to be said about them.

use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::Serialize;
use skillbox_model::{Diagnostic, SkillName};

use crate::discover::ScannedSource;
use crate::entry::SkillEntry;
use crate::nearest;
use crate::place::{What, is_below};
use crate::scan_note;
use crate::source::{ScanOptions, Scope};

/// Every skill that can be called, by name. It never changes; a refresh makes another one.
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<Contents>);

#[derive(Debug, Default)]
struct Contents {
    skills: Vec<Arc<SkillEntry>>,
    /// Positions in `skills` by name; the names themselves are kept once, in the entries.
    by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
    shadowed: Vec<Shadowed>,
    diagnostics: Vec<Diagnostic>,
}

/// A skill that another one of the same name hides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shadowed {
    /// The name of both.
    pub name: SkillName,
    /// The SKILL.md of the hidden one.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The source of the hidden one.
    pub source: Box<str>,
    /// On whose behalf the hidden one is there.
    pub scope: Scope,
    /// The SKILL.md of the one that is used.
    #[serde(serialize_with = "lossy")]
    pub by_path: PathBuf,
    /// The source of the one that is used.
    pub by_source: Box<str>,
    /// On whose behalf the used one is there.
    pub by_scope: Scope,
}

/// Paths need not be UTF-8, JSON must be.
fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl Catalog {
    /// Merges sources, low to high: the last of a name wins, and what it hides stays visible.
    pub(crate) fn merge(sources: &[ScannedSource], options: &ScanOptions) -> Self {
        let places = sources.iter().map(|source| source.places.len()).sum();
        let mut merge = Merge::with_capacity(places);
        for source in sources {
            merge.begin_source();
            for place in &source.places {
                merge.diagnostics.extend(place.notes.iter().cloned());
                if let Some(entry) = place.skill() {
                    merge.add(entry);
                }
            }
            merge.diagnostics.extend(limits_hit(source, options));
        }
        Self(Arc::new(merge.finish()))
    }

    /// The skills, in the order of their sources, then of their paths.
    pub fn skills(&self) -> impl ExactSizeIterator<Item = &SkillEntry> + DoubleEndedIterator + Clone {
        self.0.skills.iter().map(|entry| &**entry)
    }

    /// The skill of this name.
    pub fn get(&self, name: &str) -> Option<&SkillEntry> {
        self.shared(name).map(|entry| &**entry)
    }

    /// The skill of this name, to be kept beyond the catalogue.
    pub fn shared(&self, name: &str) -> Option<&Arc<SkillEntry>> {
        let contents = &*self.0;
        let at = |position: &u32| &contents.skills[*position as usize];
        contents
            .by_name
            .find(contents.hasher.hash_one(name), |position| {
                at(position).name().as_str() == name
            })
            .map(at)
    }

    /// How many skills there are.
    pub fn len(&self) -> usize {
        self.0.skills.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.skills.is_empty()
    }

    /// The skills that others of the same name hide.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.0.shadowed
    }

    /// Everything odd or broken that was met, in the order of the sources and paths.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }

    /// What there is to say about one skill.
    pub fn diagnostics_of<'a>(&'a self, entry: &'a SkillEntry) -> impl Iterator<Item = &'a Diagnostic> {
        self.diagnostics().iter().filter(|diagnostic| {
            diagnostic.path == entry.path() || diagnostic.path == entry.dir() || is_below(&diagnostic.path, entry.dir())
        })
    }

    /// The names nearest to a misspelt one, best first.
    pub fn nearest(&self, name: &str, count: usize) -> Vec<&SkillName> {
        nearest::nearest(name, self.skills().map(SkillEntry::name), count)
    }
}

/// A catalogue in the making.
#[derive(Default)]
struct Merge {
    entries: Vec<Arc<SkillEntry>>,
    /// Positions of those that a later one hides, in the order in which that came out.
    hidden: Vec<u32>,
    by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
    diagnostics: Vec<Diagnostic>,
    source_begins: usize,
}

impl Merge {
    fn with_capacity(skills: usize) -> Self {
        Self {
            entries: Vec::with_capacity(skills),
            by_name: HashTable::with_capacity(skills),
            ..Self::default()
        }
    }

    fn begin_source(&mut self) {
        self.source_begins = self.entries.len();
    }

    fn add(&mut self, entry: &Arc<SkillEntry>) {
        let position = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let name_at = |position: &u32| self.entries[*position as usize].name().as_str();
        let hash_of = |name: &str| self.hasher.hash_one(name);
        let name = entry.name().as_str();
        match self.by_name.find_mut(hash_of(name), |other| name_at(other) == name) {
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
                self.by_name
                    .insert_unique(hash_of(name), position, |other| hash_of(name_at(other)));
            }
        }
        self.entries.push(entry.clone());
    }

    fn finish(mut self) -> Contents {
        // Of three of one name the last hides both others, not only the one before it.
        let shadowed = self.hidden.iter().map(|loser| {
            let loser = &self.entries[*loser as usize];
            let name = loser.name().as_str();
            let winner = self.by_name.find(self.hasher.hash_one(name), |other| {
                self.entries[*other as usize].name().as_str() == name
            });
            shadowed(loser, winner.map_or(loser, |winner| &self.entries[*winner as usize]))
        });
        let shadowed: Vec<_> = shadowed.collect();
        self.close_gaps();
        Contents {
            skills: self.entries,
            by_name: self.by_name,
            hasher: self.hasher,
            shadowed,
            diagnostics: self.diagnostics,
        }
    }

    /// Takes the hidden skills out, and moves the positions of the others with them.
    fn close_gaps(&mut self) {
        if self.hidden.is_empty() {
            return;
        }
        self.hidden.sort_unstable();
        for position in self.by_name.iter_mut() {
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
