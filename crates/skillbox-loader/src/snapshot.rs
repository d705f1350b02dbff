//! The skills of a session as its turn found them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use skillbox_model::SkillName;

use crate::skill_view::SkillView;

/// An ordered list of skills, each name once. Cheap to clone: sessions share it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot(Arc<Listing>);

#[derive(Debug, Default)]
struct Listing {
    /// By source, then by path.
    skills: Vec<Arc<SkillView>>,
    by_name: HashMap<SkillName, usize>,
}

/// What became different between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotChange {
    /// New skills, and those that read differently now.
    pub seen: Vec<Arc<SkillView>>,
    /// Skills that are no more.
    pub gone: Vec<SkillName>,
}

impl Snapshot {
    /// Orders the skills; of two with one name the later given stays.
    pub fn new(skills: impl IntoIterator<Item = Arc<SkillView>>) -> Self {
        let mut ordered: Vec<Arc<SkillView>> = Vec::new();
        let mut by_name: HashMap<SkillName, usize> = HashMap::new();
        for skill in skills {
            match by_name.get(&skill.name) {
                Some(&at) => ordered[at] = skill,
                None => {
                    by_name.insert(skill.name.clone(), ordered.len());
                    ordered.push(skill);
                }
            }
        }
        if !ordered.is_sorted_by(|a, b| a.place() <= b.place()) {
            ordered.sort_by(|a, b| a.place().cmp(&b.place()));
            for (at, skill) in ordered.iter().enumerate() {
                if let Some(known) = by_name.get_mut(&skill.name) {
                    *known = at;
                }
            }
        }
        Self(Arc::new(Listing {
            skills: ordered,
            by_name,
        }))
    }

    /// The skills in order.
    pub fn skills(&self) -> &[Arc<SkillView>] {
        &self.0.skills
    }

    /// The skill of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<SkillView>> {
        self.0.by_name.get(name).map(|at| &self.0.skills[*at])
    }

    /// What leads from this snapshot to a newer one.
    pub fn change_to(&self, newer: &Self) -> SnapshotChange {
        if Arc::ptr_eq(&self.0, &newer.0) {
            return SnapshotChange::default();
        }
        let is_news = |skill: &&Arc<SkillView>| match self.get(skill.name.as_str()) {
            Some(known) => !Arc::ptr_eq(known, skill) && known != *skill,
            None => true,
        };
        let is_gone = |skill: &&Arc<SkillView>| newer.get(skill.name.as_str()).is_none();
        SnapshotChange {
            seen: newer.skills().iter().filter(is_news).cloned().collect(),
            gone: self
                .skills()
                .iter()
                .filter(is_gone)
                .map(|skill| skill.name.clone())
                .collect(),
        }
    }

    /// This snapshot after a change.
    pub fn with(&self, change: &SnapshotChange) -> Self {
        let gone: HashSet<&SkillName> = change.gone.iter().collect();
        let kept = self.skills().iter().filter(|skill| !gone.contains(&skill.name));
        Self::new(kept.chain(&change.seen).cloned())
    }
}

impl SnapshotChange {
    /// Whether nothing became different.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.gone.is_empty()
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.skills() == other.skills()
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.skills().iter().map(|skill| &**skill))
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let skills = Vec::<SkillView>::deserialize(deserializer)?;
        Ok(Self::new(skills.into_iter().map(Arc::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::view;

    fn names(snapshot: &Snapshot) -> Vec<&str> {
        snapshot.skills().iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn a_change_leads_from_one_to_the_other() {
        let old = Snapshot::new(["a", "b", "c"].map(|name| Arc::new(view(name, "old"))));
        let new = Snapshot::new([
            Arc::new(view("d", "new")),
            Arc::new(view("b", "new")),
            Arc::new(view("a", "old")),
        ]);
        let change = old.change_to(&new);
        assert_eq!(change.gone.iter().map(SkillName::as_str).collect::<Vec<_>>(), ["c"]);
        assert_eq!(
            change.seen.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(),
            ["b", "d"]
        );
        assert_eq!(old.with(&change), new);
        assert_eq!(names(&new), ["a", "b", "d"]);
        assert!(new.change_to(&new.clone()).is_empty());
    }

    #[test]
    fn it_is_a_list_on_the_wire() {
        let snapshot = Snapshot::new(["b", "a"].map(|name| Arc::new(view(name, "x"))));
        let text = serde_json::to_string(&snapshot).unwrap();
        let back: Snapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(back, snapshot);
        assert_eq!(back.get("a").unwrap().name.as_str(), "a");
        assert!(back.get("c").is_none());
    }
}
