//! Merges several sources into one catalog. Of the skills with the same name, the last one is used and the others are
//! listed as shadowed.

use std::path::Path;
use std::sync::Arc;

use skillbox_model::{Diagnostic, Severity};

use super::options::ScanOptions;
use super::scanned_dir::{DirKind, ScannedDir};
use super::scanned_source::ScannedSource;
use crate::catalog::{Catalog, NameIndex, ShadowedSkill, UnloadedSkill};
use crate::diagnostics::scan_diagnostics;
use crate::fs::is_below;
use crate::skill::SkillEntry;

/// Merges sources in ascending order of precedence.
pub(super) fn merge_sources(sources: &[ScannedSource], options: &ScanOptions) -> Catalog {
    let dirs = sources.iter().map(|source| source.dirs.len()).sum();
    let mut builder = CatalogBuilder::with_capacity(dirs);
    for source in sources {
        builder.source_start = builder.entries.len();
        // The directories with a SKILL.md that contain the current one, outermost first.
        let mut outer_skills: Vec<&Path> = Vec::new();
        for dir in &source.dirs {
            while outer_skills.pop_if(|outer| !is_below(dir.dir(), outer)).is_some() {}
            if let Some(skill_md) = dir.skill_md() {
                let outer = outer_skills.last();
                let nested = outer.map(|outer| scan_diagnostics::nested_skill(skill_md, outer));
                builder.diagnostics.extend(nested);
                outer_skills.push(dir.dir());
            }
            builder.add_unloaded(dir);
            builder.diagnostics.extend(dir.diagnostics.iter().cloned());
            if let Some(entry) = dir.skill() {
                builder.add(entry);
            }
        }
        builder.diagnostics.extend(exceeded_limits(source, options));
    }
    builder.finish(sources.iter().filter(|source| source.is_open).count())
}

/// Collects the entries and diagnostics of a catalog.
#[derive(Default)]
struct CatalogBuilder {
    entries: Vec<Arc<SkillEntry>>,
    /// Positions of the shadowed entries, in the order in which the entries that shadow them were added.
    shadowed: Vec<u32>,
    by_name: NameIndex,
    diagnostics: Vec<Diagnostic>,
    unloaded: Vec<UnloadedSkill>,
    /// The position of the first entry of the current source.
    source_start: usize,
}

impl CatalogBuilder {
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
                let diagnostic =
                    scan_diagnostics::duplicate_name(name, entry.skill_md_path(), shadowed.skill_md_path());
                self.diagnostics.push(diagnostic);
            }
        }
        self.entries.push(entry.clone());
    }

    /// Adds a directory that cannot be used. Its diagnostics must be added next.
    fn add_unloaded(&mut self, dir: &ScannedDir) {
        let DirKind::Unusable { unloaded, .. } = &dir.kind else {
            return;
        };
        let reason = dir.diagnostics.iter().position(|it| it.severity == Severity::Error);
        let has_reason = dir.diagnostics.iter().next().is_some();
        if let Some(name) = dir.dir().file_name().filter(|_| has_reason) {
            self.unloaded.push(UnloadedSkill {
                directory_name: name.to_string_lossy().into(),
                declared_name: unloaded.as_ref().and_then(|unloaded| unloaded.declared_name.clone()),
                loads_with_fallback: unloaded.as_ref().is_some_and(|unloaded| unloaded.loads_with_fallback),
                diagnostic: self.diagnostics.len() + reason.unwrap_or(0),
            });
        }
    }

    fn finish(mut self, source_count: usize) -> Catalog {
        // Of three skills with one name, the last shadows both others, so the used skill is known only after all
        // sources were added.
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
        Catalog::new(
            &self.entries,
            self.by_name,
            shadowed,
            self.diagnostics,
            self.unloaded,
            source_count,
        )
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
        path: shadowed.skill_md_path().to_owned(),
        source: shadowed.source_label().into(),
        source_position: shadowed.source_position(),
        scope: shadowed.scope(),
        by_path: used.skill_md_path().to_owned(),
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
        diagnostics.push(scan_diagnostics::depth_limit(first, too_deep.len(), options.max_depth));
    }
    if source.exceeds_dir_limit {
        diagnostics.push(scan_diagnostics::directory_limit(
            &source.info.root,
            options.max_directories,
        ));
    }
    diagnostics
}
