//! The current catalog and the scanned sources from which it is merged.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::log_sources::log_loaded_sources;
use super::merge::merge_sources;
use super::options::ScanOptions;
use super::rescan::SourceUpdate;
use super::scanned_source::ScannedSource;
use crate::catalog::{Catalog, CatalogChange};
use crate::fs::is_below;
use crate::skill::Source;

/// The scanned sources, and the catalog that was merged from them.
#[derive(Debug)]
pub(crate) struct CurrentCatalog {
    options: ScanOptions,
    sources: Mutex<Vec<ScannedSource>>,
    catalog: RwLock<Catalog>,
}

impl CurrentCatalog {
    /// Scans sources, which are in ascending order of precedence.
    pub(crate) fn scan(sources: Vec<Source>, options: ScanOptions) -> Self {
        let sources: Vec<_> = sources
            .into_iter()
            .zip(0..)
            .map(|(source, position)| ScannedSource::scan(source, position, &options))
            .collect();
        let catalog = merge_sources(&sources, &options);
        log_loaded_sources(&sources, &catalog);
        Self {
            options,
            sources: Mutex::new(sources),
            catalog: RwLock::new(catalog),
        }
    }

    pub(crate) fn catalog(&self) -> Catalog {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks every directory and SKILL.md.
    pub(crate) fn rescan(&self) -> (CatalogChange, SourceUpdate) {
        self.update(|source, options, update| source.rescan(options, update))
    }

    /// Checks only the given paths.
    pub(crate) fn rescan_paths(&self, paths: &[PathBuf]) -> (CatalogChange, SourceUpdate) {
        self.update(|source, options, update| source.rescan_paths(paths, options, update))
    }

    /// Rescans every source for whose root `needs_rescan` returns true. In the other sources, checks only the root and
    /// the given paths.
    pub(crate) fn rescan_paths_or_source(
        &self,
        paths: &HashSet<PathBuf>,
        needs_rescan: impl Fn(&Path) -> bool,
    ) -> (CatalogChange, SourceUpdate) {
        self.update(|source, options, update| {
            let root = &source.info.root;
            if needs_rescan(root) {
                source.rescan(options, update);
            } else {
                // The root may have been replaced or created, and its parent is not watched.
                let paths: Vec<PathBuf> = std::iter::once(root).chain(paths).cloned().collect();
                source.rescan_paths(&paths, options, update);
            }
        })
    }

    /// Every scanned directory on disk.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let sources = self.lock_sources();
        let on_disk = sources
            .iter()
            .filter(|source| !matches!(source.source, Source::Embedded(_)));
        on_disk
            .flat_map(|source| source.dirs.iter().map(|scanned| scanned.dir().to_owned()))
            .collect()
    }

    /// The scanned directories among `roots` and everything below them.
    pub(crate) fn directories_below(&self, roots: &HashSet<PathBuf>) -> Vec<PathBuf> {
        let sources = self.lock_sources();
        let mut directories = Vec::new();
        for (root, source) in roots
            .iter()
            .flat_map(|root| sources.iter().map(move |source| (root, source)))
        {
            let Some(first) = source.find_dir(root) else { continue };
            let below = source.dirs[first..].iter().map(|scanned| scanned.dir());
            let below = below.take_while(|dir| *dir == root || is_below(dir, root));
            directories.extend(below.map(Path::to_owned));
        }
        directories
    }

    /// Whether a directory was scanned.
    pub(crate) fn contains_directory(&self, directory: &Path) -> bool {
        self.lock_sources()
            .iter()
            .any(|source| source.find_dir(directory).is_some())
    }

    fn update(
        &self,
        update_source: impl Fn(&mut ScannedSource, &ScanOptions, &mut SourceUpdate),
    ) -> (CatalogChange, SourceUpdate) {
        let mut sources = self.lock_sources();
        let mut update = SourceUpdate::default();
        for source in sources.iter_mut() {
            update_source(source, &self.options, &mut update);
        }
        let before = self.catalog();
        let (after, change) = if update.needs_merge {
            let after = merge_sources(&sources, &self.options);
            let change = CatalogChange::between(&before, &after);
            (after, change)
        } else if update.replacements.is_empty() {
            return (CatalogChange::default(), update);
        } else {
            let (after, changed) = before.with_replacements(&update.replacements);
            let change = CatalogChange {
                changed,
                ..CatalogChange::default()
            };
            (after, change)
        };
        if !change.is_empty() {
            log_loaded_sources(&sources, &after);
        }
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = after;
        (change, update)
    }

    /// Ignores poisoning: after a panic during a scan, the results so far are still valid.
    fn lock_sources(&self) -> MutexGuard<'_, Vec<ScannedSource>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
