//! The skills that can be used at one moment, and their diagnostics.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use skillbox_model::{Diagnostic, SkillName};

use super::name_index::NameIndex;
use super::nearest_names::nearest_names;
use crate::diagnostics::ScanCode;
use crate::fs::is_below;
use crate::skill::{Scope, SkillEntry};

/// Entries are stored in chunks, so that replacing an entry copies only its chunk.
const CHUNK_ENTRIES: usize = 256;

/// Every usable skill, by name. A catalog never changes: a refresh creates a new one, which shares the unchanged parts.
/// Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<Contents>);

#[derive(Clone, Debug, Default)]
struct Contents {
    /// Ordered by source, then by path.
    chunks: Vec<Arc<[Arc<SkillEntry>]>>,
    by_name: Arc<NameIndex>,
    shadowed: Arc<[ShadowedSkill]>,
    diagnostics: Arc<[Diagnostic]>,
    unloaded: Arc<[UnloadedSkill]>,
    source_count: usize,
}

/// A directory that looks like a skill but did not load.
#[derive(Clone, Debug)]
pub(crate) struct UnloadedSkill {
    /// The name of the directory.
    pub(crate) directory_name: Box<str>,
    /// The name in the frontmatter, if there is one.
    pub(crate) declared_name: Option<Box<str>>,
    /// Whether the skill would load with the metadata fallback.
    pub(crate) loads_with_fallback: bool,
    /// The position of the diagnostic that says why it did not load.
    pub(crate) diagnostic: usize,
}

/// A skill that is not used because another skill has the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShadowedSkill {
    /// The name of both skills.
    pub name: SkillName,
    /// The SKILL.md of the shadowed skill.
    #[serde(serialize_with = "serialize_lossy")]
    pub path: PathBuf,
    /// The source of the shadowed skill.
    pub source: Box<str>,
    /// The position of that source in the list of sources.
    #[serde(skip)]
    pub source_position: u32,
    /// The scope of the shadowed skill.
    pub scope: Scope,
    /// The SKILL.md of the skill that is used.
    #[serde(serialize_with = "serialize_lossy")]
    pub by_path: PathBuf,
    /// The source of the skill that is used.
    pub by_source: Box<str>,
    /// The scope of the skill that is used.
    pub by_scope: Scope,
}

/// Paths need not be UTF-8, but JSON must be.
fn serialize_lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// A new entry for a skill whose name and path did not change.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) old: Arc<SkillEntry>,
    pub(crate) new: Arc<SkillEntry>,
}

impl Catalog {
    pub(crate) fn new(
        skills: &[Arc<SkillEntry>],
        by_name: NameIndex,
        shadowed: Vec<ShadowedSkill>,
        diagnostics: Vec<Diagnostic>,
        unloaded: Vec<UnloadedSkill>,
        source_count: usize,
    ) -> Self {
        Self(Arc::new(Contents {
            chunks: skills.chunks(CHUNK_ENTRIES).map(Arc::from).collect(),
            by_name: Arc::new(by_name),
            shadowed: shadowed.into(),
            diagnostics: diagnostics.into(),
            unloaded: unloaded.into(),
            source_count,
        }))
    }

    /// Returns the catalog with entries replaced, and the names of the replaced entries.
    pub(crate) fn with_replacements(&self, replacements: &[Replacement]) -> (Self, Vec<SkillName>) {
        let mut contents = (*self.0).clone();
        let mut names = Vec::new();
        for Replacement { old, new } in replacements {
            let Some(position) = self.position(old.name().as_str()) else {
                continue;
            };
            let chunk = &mut contents.chunks[position / CHUNK_ENTRIES];
            // A shadowed skill may change too, which does not affect the catalog.
            if Arc::ptr_eq(&chunk[position % CHUNK_ENTRIES], old) {
                Arc::make_mut(chunk)[position % CHUNK_ENTRIES] = new.clone();
                names.push(new.name().clone());
            }
        }
        (Self(Arc::new(contents)), names)
    }

    /// The skills, ordered by source, then by path.
    pub fn skills(&self) -> impl DoubleEndedIterator<Item = &SkillEntry> + Clone {
        self.0
            .chunks
            .iter()
            .flat_map(|chunk| chunk.iter().map(|entry| &**entry))
    }

    /// Returns the skill with this name.
    pub fn get(&self, name: &str) -> Option<&SkillEntry> {
        self.get_shared(name).map(|entry| &**entry)
    }

    /// Returns the skill with this name as a shared pointer, which may outlive the catalog.
    pub fn get_shared(&self, name: &str) -> Option<&Arc<SkillEntry>> {
        self.position(name).map(|position| self.at(position))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.by_name.find(name, |position| self.at(position).name().as_str())
    }

    fn at(&self, position: usize) -> &Arc<SkillEntry> {
        &self.0.chunks[position / CHUNK_ENTRIES][position % CHUNK_ENTRIES]
    }

    /// The number of skills.
    pub fn len(&self) -> usize {
        self.0.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Whether the catalog has no skills.
    pub fn is_empty(&self) -> bool {
        self.0.chunks.is_empty()
    }

    /// The number of sources that exist.
    pub fn source_count(&self) -> usize {
        self.0.source_count
    }

    /// The skills that are not used because of another skill with the same name.
    pub fn shadowed(&self) -> &[ShadowedSkill] {
        &self.0.shadowed
    }

    /// The diagnostics of the scan, ordered by source and path.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }

    /// The diagnostics about one skill, without those about the skills inside it.
    pub fn diagnostics_of<'a>(&'a self, entry: &'a SkillEntry) -> impl Iterator<Item = &'a Diagnostic> {
        let below = self
            .skills()
            .map(SkillEntry::dir)
            .filter(|dir| is_below(dir, entry.dir()));
        let nested: Vec<&Path> = below.collect();
        let is_about_nested = move |diagnostic: &Diagnostic| {
            let is_in = |dir: &&Path| diagnostic.path == **dir || is_below(&diagnostic.path, dir);
            diagnostic.code != ScanCode::NestedSkill.as_str() && nested.iter().any(is_in)
        };
        self.diagnostics().iter().filter(move |diagnostic| {
            let is_about_entry = diagnostic.path == entry.skill_md_path()
                || diagnostic.path == entry.dir()
                || is_below(&diagnostic.path, entry.dir());
            is_about_entry && !is_about_nested(diagnostic)
        })
    }

    /// Why a skill that exists did not load: the skill's directory, or the name in its frontmatter, has this name. Of
    /// several, the one with the highest precedence is returned.
    pub fn why_not_loaded(&self, name: &str) -> Option<&Diagnostic> {
        let has_name = |it: &&UnloadedSkill| *it.directory_name == *name || it.declared_name.as_deref() == Some(name);
        let unloaded = self.0.unloaded.iter().rev().find(has_name)?;
        self.0.diagnostics.get(unloaded.diagnostic)
    }

    /// The number of skills that did not load, but would with [`ScanOptions::metadata_fallback`].
    ///
    /// [`ScanOptions::metadata_fallback`]: crate::ScanOptions::metadata_fallback
    pub fn loadable_with_fallback(&self) -> usize {
        self.0.unloaded.iter().filter(|it| it.loads_with_fallback).count()
    }

    /// The names most similar to a misspelled one, best first.
    pub fn nearest_names(&self, name: &str, count: usize) -> Vec<&SkillName> {
        nearest_names(name, self.skills().map(SkillEntry::name), count)
    }
}
