//! The entry point of the crate: sources, their catalog, and how it is kept up to date.

use std::path::Path;
use std::sync::Arc;

use crate::catalog::{Catalog, CatalogChange};
use crate::scan::{CurrentCatalog, ScanOptions};
use crate::skill::Source;
use crate::watch::{ActiveWatch, WatchError, WatchHandle, WatchOptions};

/// A list of sources and the catalog of their skills.
#[derive(Debug)]
pub struct Repository {
    current: Arc<CurrentCatalog>,
    watch: Arc<ActiveWatch>,
}

impl Repository {
    /// Scans sources, which are in ascending order of precedence. Errors are diagnostics of the catalog.
    pub fn open(sources: Vec<Source>, options: ScanOptions) -> Self {
        let current = CurrentCatalog::scan(sources, options);
        let catalog = current.catalog();
        tracing::info!(
            skills = catalog.len(),
            sources = catalog.source_count(),
            shadowed = catalog.shadowed().len(),
            diagnostics = catalog.diagnostics().len(),
            "skills discovered"
        );
        Self {
            current: Arc::new(current),
            watch: Arc::default(),
        }
    }

    /// The catalog as of the last refresh.
    pub fn catalog(&self) -> Catalog {
        self.current.catalog()
    }

    /// Updates the catalog to the current state of the disk, reading only what changed, and returns the difference.
    /// Call it at the start of a turn or run.
    ///
    /// With a watch, only paths with events are checked. Without one, every directory and SKILL.md is checked, at the
    /// cost of one `stat` each.
    pub fn refresh(&self) -> CatalogChange {
        match self.watch.current() {
            Some(watch_loop) => watch_loop.refresh_now(&self.current),
            None => self.current.rescan().0,
        }
    }

    /// Checks one skill's directory even if it had no event, at the cost of a `stat` for it and its SKILL.md.
    pub fn refresh_skill(&self, directory: &Path) -> CatalogChange {
        self.current.rescan_paths(&[directory.to_owned()]).0
    }

    /// Starts to update the catalog in the background, with the default timing.
    pub fn watch(&self) -> Result<WatchHandle, WatchError> {
        self.watch_with(WatchOptions::default())
    }

    /// Starts to update the catalog in the background. It returns at once; [`WatchHandle::mode`] reports the progress.
    pub fn watch_with(&self, options: WatchOptions) -> Result<WatchHandle, WatchError> {
        WatchHandle::start(&self.current, &self.watch, options)
    }
}
