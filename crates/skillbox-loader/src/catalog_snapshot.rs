//! The skills of a catalog, as a session sees them during a turn.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use skillbox_model::SkillName;

use crate::skill_view::SkillView;

/// An ordered list of skills with unique names. Cheap to clone: sessions share it.
#[derive(Clone, Debug, Default)]
pub struct CatalogSnapshot(Arc<SkillIndex>);

#[derive(Clone, Debug, Default)]
struct SkillIndex {
    /// Sorted by the first source that has the name, then by path: a skill keeps the position of the one it overrides.
    skills: Vec<Arc<SkillView>>,
    by_name: HashMap<SkillName, usize>,
    source_count: usize,
}

/// The difference between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotDiff {
    /// Skills that are new or have changed.
    pub changed: Vec<Arc<SkillView>>,
    /// Skills that no longer exist.
    pub removed: Vec<SkillName>,
}

impl CatalogSnapshot {
    /// Sorts the skills. Of two with the same name, the later one wins.
    pub fn new(skills: impl IntoIterator<Item = Arc<SkillView>>) -> Self {
        let mut ordered: Vec<Arc<SkillView>> = Vec::new();
        let mut by_name: HashMap<SkillName, usize> = HashMap::new();
        for skill in skills {
            match by_name.get(&skill.name) {
                Some(&index) => ordered[index] = skill,
                None => {
                    by_name.insert(skill.name.clone(), ordered.len());
                    ordered.push(skill);
                }
            }
        }
        if !ordered.is_sorted_by(|a, b| a.first_position() <= b.first_position()) {
            ordered.sort_by(|a, b| a.first_position().cmp(&b.first_position()));
            for (index, skill) in ordered.iter().enumerate() {
                if let Some(entry) = by_name.get_mut(&skill.name) {
                    *entry = index;
                }
            }
        }
        Self(Arc::new(SkillIndex {
            skills: ordered,
            by_name,
            source_count: 0,
        }))
    }

    /// Records how many sources the skills come from.
    pub(crate) fn with_source_count(self, source_count: usize) -> Self {
        let Self(index) = self;
        let index = Arc::unwrap_or_clone(index);
        Self(Arc::new(SkillIndex { source_count, ..index }))
    }

    /// How many sources were scanned; 0 for a stored snapshot.
    pub(crate) fn source_count(&self) -> usize {
        self.0.source_count
    }

    /// The skills in order.
    pub fn skills(&self) -> &[Arc<SkillView>] {
        &self.0.skills
    }

    /// Finds a skill by name.
    pub fn get(&self, name: &str) -> Option<&Arc<SkillView>> {
        self.0.by_name.get(name).map(|index| &self.0.skills[*index])
    }

    /// Computes the difference between this snapshot and a newer one.
    pub fn diff(&self, newer: &Self) -> SnapshotDiff {
        if Arc::ptr_eq(&self.0, &newer.0) {
            return SnapshotDiff::default();
        }
        let is_changed = |skill: &&Arc<SkillView>| match self.get(skill.name.as_str()) {
            Some(older) => !Arc::ptr_eq(older, skill) && older != *skill,
            None => true,
        };
        let is_removed = |skill: &&Arc<SkillView>| newer.get(skill.name.as_str()).is_none();
        SnapshotDiff {
            changed: newer.skills().iter().filter(is_changed).cloned().collect(),
            removed: self
                .skills()
                .iter()
                .filter(is_removed)
                .map(|skill| skill.name.clone())
                .collect(),
        }
    }

    /// Returns this snapshot with a difference applied.
    pub fn apply(&self, diff: &SnapshotDiff) -> Self {
        let removed: HashSet<&SkillName> = diff.removed.iter().collect();
        let kept = self.skills().iter().filter(|skill| !removed.contains(&skill.name));
        Self::new(kept.chain(&diff.changed).cloned())
    }
}

impl SnapshotDiff {
    /// Whether the snapshots are equal.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

impl PartialEq for CatalogSnapshot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.skills() == other.skills()
    }
}

impl Serialize for CatalogSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.skills().iter().map(|skill| &**skill))
    }
}

impl<'de> Deserialize<'de> for CatalogSnapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let skills = Vec::<SkillView>::deserialize(deserializer)?;
        Ok(Self::new(skills.into_iter().map(Arc::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::skill_view;

    fn names(snapshot: &CatalogSnapshot) -> Vec<&str> {
        snapshot.skills().iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn applying_a_diff_gives_the_newer_snapshot() {
        let old = CatalogSnapshot::new(["a", "b", "c"].map(|name| Arc::new(skill_view(name, "old"))));
        let new = CatalogSnapshot::new([
            Arc::new(skill_view("d", "new")),
            Arc::new(skill_view("b", "new")),
            Arc::new(skill_view("a", "old")),
        ]);
        let diff = old.diff(&new);
        assert_eq!(diff.removed.iter().map(SkillName::as_str).collect::<Vec<_>>(), ["c"]);
        assert_eq!(
            diff.changed.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(),
            ["b", "d"]
        );
        assert_eq!(old.apply(&diff), new);
        assert_eq!(names(&new), ["a", "b", "d"]);
        assert!(new.diff(&new.clone()).is_empty());
    }

    #[test]
    fn a_snapshot_serialises_as_a_list() {
        let snapshot = CatalogSnapshot::new(["b", "a"].map(|name| Arc::new(skill_view(name, "x"))));
        let text = serde_json::to_string(&snapshot).unwrap();
        let parsed: CatalogSnapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed, snapshot);
        assert_eq!(parsed.get("a").unwrap().name.as_str(), "a");
        assert!(parsed.get("c").is_none());
    }
}
