//! The skills that can be used at one moment, and what is to be said about them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use skillbox_model::{Diagnostic, SkillName};

use crate::entry::SkillEntry;
use crate::merge::NameIndex;
use crate::nearest;
use crate::place::is_below;
use crate::source::Scope;

/// Entries are kept in pieces of this many, so that a changed one costs a copy of its piece alone.
const PIECE: usize = 256;

/// Every skill that can be called, by name. It never changes; a refresh makes another one that shares with it
/// whatever stayed the same. A clone costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<Contents>);

#[derive(Clone, Debug, Default)]
struct Contents {
    /// In the order of the sources, then of the paths.
    pieces: Vec<Arc<[Arc<SkillEntry>]>>,
    by_name: Arc<NameIndex>,
    shadowed: Arc<[Shadowed]>,
    diagnostics: Arc<[Diagnostic]>,
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

/// An entry that was read again under the same name and path.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) old: Arc<SkillEntry>,
    pub(crate) new: Arc<SkillEntry>,
}

impl Catalog {
    pub(crate) fn new(
        skills: &[Arc<SkillEntry>],
        by_name: NameIndex,
        shadowed: Vec<Shadowed>,
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        Self(Arc::new(Contents {
            pieces: skills.chunks(PIECE).map(Arc::from).collect(),
            by_name: Arc::new(by_name),
            shadowed: shadowed.into(),
            diagnostics: diagnostics.into(),
        }))
    }

    /// The same catalogue with entries replaced, and the names of those that were in it.
    pub(crate) fn patched(&self, replacements: &[Replacement]) -> (Self, Vec<SkillName>) {
        let mut contents = (*self.0).clone();
        let mut names = Vec::new();
        for Replacement { old, new } in replacements {
            let Some(position) = self.position(old.name().as_str()) else {
                continue;
            };
            let piece = &mut contents.pieces[position / PIECE];
            // A hidden skill may change too, and changes nothing here.
            if Arc::ptr_eq(&piece[position % PIECE], old) {
                Arc::make_mut(piece)[position % PIECE] = new.clone();
                names.push(new.name().clone());
            }
        }
        (Self(Arc::new(contents)), names)
    }

    /// The skills, in the order of their sources, then of their paths.
    pub fn skills(&self) -> impl DoubleEndedIterator<Item = &SkillEntry> + Clone {
        self.0
            .pieces
            .iter()
            .flat_map(|piece| piece.iter().map(|entry| &**entry))
    }

    /// The skill of this name.
    pub fn get(&self, name: &str) -> Option<&SkillEntry> {
        self.shared(name).map(|entry| &**entry)
    }

    /// The skill of this name, to be kept beyond the catalogue.
    pub fn shared(&self, name: &str) -> Option<&Arc<SkillEntry>> {
        self.position(name).map(|position| self.at(position))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.by_name.find(name, |position| self.at(position).name().as_str())
    }

    fn at(&self, position: usize) -> &Arc<SkillEntry> {
        &self.0.pieces[position / PIECE][position % PIECE]
    }

    /// How many skills there are.
    pub fn len(&self) -> usize {
        self.0.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.pieces.is_empty()
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
        nearest(name, self.skills().map(SkillEntry::name), count)
    }
}
