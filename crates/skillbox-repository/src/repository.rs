//! Sources, kept up to date.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use skillbox_model::SkillName;

use crate::catalog::Catalog;
use crate::discover::ScannedSource;
use crate::merge::merge;
use crate::place::is_below;
use crate::refresh::Touched;
use crate::source::{ScanOptions, Source};
use crate::watch::Keeper;

/// A list of sources and the catalogue of what they hold.
#[derive(Debug)]
pub struct Repository {
    options: ScanOptions,
    sources: Mutex<Vec<ScannedSource>>,
    catalog: RwLock<Catalog>,
    keeper: Mutex<Option<Arc<Keeper>>>,
}

/// How one catalogue differs from an earlier one. Names are in the order of the catalogues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogChange {
    /// Names that are new.
    pub added: Vec<SkillName>,
    /// Names that stand for another text or another place than before.
    pub changed: Vec<SkillName>,
    /// Names that are gone.
    pub removed: Vec<SkillName>,
}

impl CatalogChange {
    /// What leads from the catalogue `before` to the catalogue `after`.
    pub fn between(before: &Catalog, after: &Catalog) -> Self {
        let mut change = Self::default();
        for entry in after.skills() {
            match before.get(entry.name().as_str()) {
                None => change.added.push(entry.name().clone()),
                // Entries that did not change are carried over, not made again.
                Some(old) if !std::ptr::eq(old, entry) => change.changed.push(entry.name().clone()),
                Some(_) => {}
            }
        }
        let gone = before.skills().filter(|old| after.get(old.name().as_str()).is_none());
        change.removed = gone.map(|old| old.name().clone()).collect();
        change
    }

    /// Adds what happened after this.
    pub(crate) fn append(&mut self, later: Self) {
        self.added.extend(later.added);
        self.changed.extend(later.changed);
        self.removed.extend(later.removed);
    }

    /// Whether the two hold the same skills.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl Repository {
    /// Scans the sources, low to high. Nothing here fails: what is wrong is in the catalogue's diagnostics.
    pub fn open(sources: Vec<Source>, options: ScanOptions) -> Self {
        let sources: Vec<_> = sources
            .into_iter()
            .map(|source| ScannedSource::scan(source, &options))
            .collect();
        let catalog = merge(&sources, &options);
        tracing::info!(
            skills = catalog.len(),
            shadowed = catalog.shadowed().len(),
            diagnostics = catalog.diagnostics().len(),
            "skills discovered"
        );
        Self {
            options,
            sources: Mutex::new(sources),
            catalog: RwLock::new(catalog),
            keeper: Mutex::default(),
        }
    }

    /// The catalogue as of the last refresh.
    pub fn catalog(&self) -> Catalog {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Brings the catalogue up to date with the disk as it is now, re-reading only what changed, and tells the
    /// difference. Call it at the start of a turn or run.
    ///
    /// With a watch, only what the kernel told of is looked at; without one, every directory and SKILL.md is, which
    /// costs one `stat` each.
    pub fn refresh(&self) -> CatalogChange {
        let keeper = self.lock_keeper().clone();
        match keeper {
            Some(keeper) => keeper.refresh_now(self),
            None => {
                self.update(|source, options, touched| source.rescan(options, touched))
                    .0
            }
        }
    }

    /// Looks at the places that these paths are about.
    pub(crate) fn refresh_paths(&self, paths: &[PathBuf]) -> (CatalogChange, Touched) {
        self.update(|source, options, touched| source.recheck(paths, options, touched))
    }

    /// Every directory that is looked into.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let sources = self.lock_sources();
        let on_disk = sources
            .iter()
            .filter(|source| !matches!(source.source, Source::Embedded(_)));
        on_disk
            .flat_map(|source| source.places.iter().map(|place| place.dir().to_owned()))
            .collect()
    }

    /// Those among them that are or lie below the given ones.
    pub(crate) fn directories_below(&self, tops: &HashSet<PathBuf>) -> Vec<PathBuf> {
        let sources = self.lock_sources();
        let mut directories = Vec::new();
        for (top, source) in tops
            .iter()
            .flat_map(|top| sources.iter().map(move |source| (top, source)))
        {
            let Some(first) = source.find(top) else { continue };
            let below = source.places[first..].iter().map(|place| place.dir());
            let below = below.take_while(|dir| *dir == top || is_below(dir, top));
            directories.extend(below.map(Path::to_owned));
        }
        directories
    }

    /// Whether a directory is among them.
    pub(crate) fn looks_into(&self, directory: &Path) -> bool {
        self.lock_sources()
            .iter()
            .any(|source| source.find(directory).is_some())
    }

    pub(crate) fn update(
        &self,
        look: impl Fn(&mut ScannedSource, &ScanOptions, &mut Touched),
    ) -> (CatalogChange, Touched) {
        let mut sources = self.lock_sources();
        let mut touched = Touched::default();
        for source in sources.iter_mut() {
            look(source, &self.options, &mut touched);
        }
        let before = self.catalog();
        let (after, change) = if touched.remade {
            let after = merge(&sources, &self.options);
            let change = CatalogChange::between(&before, &after);
            (after, change)
        } else if touched.replaced.is_empty() {
            return (CatalogChange::default(), touched);
        } else {
            let (after, changed) = before.patched(&touched.replaced);
            let change = CatalogChange {
                changed,
                ..CatalogChange::default()
            };
            (after, change)
        };
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = after;
        (change, touched)
    }

    /// A scan that panicked has left the last complete state behind; it is as good as any.
    pub(crate) fn lock_sources(&self) -> MutexGuard<'_, Vec<ScannedSource>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_keeper(&self) -> MutexGuard<'_, Option<Arc<Keeper>>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
