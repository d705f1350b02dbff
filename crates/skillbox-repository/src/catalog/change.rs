//! The difference between two catalogs.

use skillbox_model::SkillName;

use super::entries::Catalog;

/// The difference between two catalogs. Names are in the order of the catalogs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogChange {
    /// Names only in the later catalog.
    pub added: Vec<SkillName>,
    /// Names in both catalogs whose skill has different content or a different path.
    pub changed: Vec<SkillName>,
    /// Names only in the earlier catalog.
    pub removed: Vec<SkillName>,
}

impl CatalogChange {
    /// Compares two catalogs.
    pub fn between(before: &Catalog, after: &Catalog) -> Self {
        let mut change = Self::default();
        for entry in after.skills() {
            match before.get(entry.name().as_str()) {
                None => change.added.push(entry.name().clone()),
                // Both catalogs share the entries that did not change.
                Some(old) if !std::ptr::eq(old, entry) => change.changed.push(entry.name().clone()),
                Some(_) => {}
            }
        }
        let removed = before.skills().filter(|old| after.get(old.name().as_str()).is_none());
        change.removed = removed.map(|old| old.name().clone()).collect();
        change
    }

    /// Adds the names of a later change.
    pub(crate) fn append(&mut self, later: Self) {
        self.added.extend(later.added);
        self.changed.extend(later.changed);
        self.removed.extend(later.removed);
    }

    /// Whether the catalogs do not differ.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}
