//! Merges several sources into one catalog: the last skill of a name is used, the others are listed as shadowed.

use std::path::Path;
use std::sync::Arc;

use skillbox_model::Diagnostic;

use super::options::ScanOptions;
use super::scanned_dir::DirKind;
use super::scanned_source::ScannedSource;
use crate::catalog::{Catalog, NameIndex, ShadowedSkill};
use crate::diagnostics::scan;
use crate::skill::SkillEntry;

/// Merges sources in ascending order of precedence.
pub(super) fn merge_sources(sources: &[ScannedSource], options: &ScanOptions) -> Catalog {
    let dirs = sources.iter().map(|source| source.dirs.len()).sum();
    let mut merge = Merge::with_capacity(dirs);
    for source in sources {
        merge.source_start = merge.entries.len();
        for dir in &source.dirs {
            merge.diagnostics.extend(dir.diagnostics.iter().cloned());
            if let Some(entry) = dir.skill() {
                merge.add(entry);
            }
        }
        merge.diagnostics.extend(exceeded_limits(source, options));
    }
    merge.finish()
}

/// The state of a merge.
#[derive(Default)]
struct Merge {
    entries: Vec<Arc<SkillEntry>>,
    /// Positions of the shadowed entries, in the order in which the entries that shadow them were added.
    shadowed: Vec<u32>,
    by_name: NameIndex,
    diagnostics: Vec<Diagnostic>,
    /// The position of the first entry of the current source.
    source_start: usize,
}

impl Merge {
    fn with_capacity(skills: usize) -> Self {
        Self {
            entries: Vec::with_capacity(skills),
            by_name: NameIndex::with_capacity(skills),
            ..Self::default()
        }
    }

    fn add(&mut self, entry: &Arc<SkillEntry>) {
        let position = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let name = entry.name().as_str();
        let name_at = |position: usize| self.entries[position].name().as_str();
        if let Some(shadowed) = self.by_name.insert(name, position, name_at) {
            self.shadowed.push(shadowed);
            if shadowed as usize >= self.source_start {
                let shadowed = &self.entries[shadowed as usize];
                let diagnostic = scan::duplicate_name(name, entry.path(), shadowed.path());
                self.diagnostics.push(diagnostic);
            }
        }
        self.entries.push(entry.clone());
    }

    fn finish(mut self) -> Catalog {
        // Of three skills with one name, the last shadows both others. Therefore the used one is looked up now.
        let entry_at = |position: usize| &*self.entries[position];
        let shadowed = self.shadowed.iter().map(|position| {
            let shadowed = entry_at(*position as usize);
            let used = self
                .by_name
                .find(shadowed.name().as_str(), |other| entry_at(other).name().as_str());
            shadowed_skill(shadowed, used.map_or(shadowed, entry_at))
        });
        let shadowed = shadowed.collect();
        self.remove_shadowed();
        Catalog::new(&self.entries, self.by_name, shadowed, self.diagnostics)
    }

    fn remove_shadowed(&mut self) {
        if self.shadowed.is_empty() {
            return;
        }
        self.shadowed.sort_unstable();
        self.by_name.close_gaps(&self.shadowed);
        let mut position = 0;
        self.entries.retain(|_| {
            position += 1;
            self.shadowed.binary_search(&(position - 1)).is_err()
        });
    }
}

fn shadowed_skill(shadowed: &SkillEntry, used: &SkillEntry) -> ShadowedSkill {
    ShadowedSkill {
        name: shadowed.name().clone(),
        path: shadowed.path().to_owned(),
        source: shadowed.source_label().into(),
        scope: shadowed.scope(),
        by_path: used.path().to_owned(),
        by_source: used.source_label().into(),
        by_scope: used.scope(),
    }
}

fn exceeded_limits(source: &ScannedSource, options: &ScanOptions) -> Vec<Diagnostic> {
    let too_deep: Vec<&Path> = source
        .dirs
        .iter()
        .filter_map(|dir| match &dir.kind {
            DirKind::Group {
                dir,
                exceeds_depth: true,
                ..
            } => Some(&**dir),
            _ => None,
        })
        .collect();
    let mut diagnostics = Vec::new();
    if let Some(first) = too_deep.first() {
        diagnostics.push(scan::depth_limit(first, too_deep.len(), options.max_depth));
    }
    if source.exceeds_dir_limit {
        diagnostics.push(scan::directory_limit(&source.info.root, options.max_directories));
    }
    diagnostics
}
