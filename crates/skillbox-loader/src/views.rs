//! Makes the session's view of skills from a catalogue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use skillbox_repository::{Catalog, Scope, SkillEntry, SkillMeta};

use crate::skill_view::{FirstSeen, Owner, SkillView, SteeringView};
use crate::snapshot::Snapshot;

/// Snapshots of catalogues. Sessions that share it share their views too, and a catalogue that was seen before
/// costs a comparison of pointers.
#[derive(Debug, Default)]
pub struct ViewCache(Mutex<Option<(Catalog, Snapshot)>>);

impl ViewCache {
    /// The snapshot of a catalogue.
    pub fn snapshot(&self, catalog: &Catalog) -> Snapshot {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, snapshot)) = &*cached
            && is_same(known, catalog)
        {
            return snapshot.clone();
        }
        let snapshot = Snapshot::new(views(catalog, cached.as_ref()));
        *cached = Some((catalog.clone(), snapshot.clone()));
        snapshot
    }
}

/// Entries that did not change are carried over from catalogue to catalogue, so pointers tell.
fn is_same(known: &Catalog, catalog: &Catalog) -> bool {
    known.len() == catalog.len() && known.skills().zip(catalog.skills()).all(|(a, b)| std::ptr::eq(a, b))
}

fn views(catalog: &Catalog, cached: Option<&(Catalog, Snapshot)>) -> Vec<Arc<SkillView>> {
    let ranks = ranks(catalog);
    let firsts = first_seen(catalog, &ranks);
    let rank = |source: &str| ranks.get(source).copied().unwrap_or(0);
    let mut views = Vec::with_capacity(catalog.len());
    for entry in catalog.skills() {
        let name = entry.name().as_str();
        let source_rank = rank(entry.source_label());
        let first = firsts.get(name);
        let reusable = cached.and_then(|(known, snapshot)| {
            let same_entry = known.get(name).is_some_and(|old| std::ptr::eq(old, entry));
            let old = snapshot.get(name).filter(|_| same_entry)?;
            (old.source_rank == source_rank && old.first_seen.as_deref() == first).then(|| old.clone())
        });
        views.push(reusable.unwrap_or_else(|| Arc::new(view(entry, source_rank, first.cloned()))));
    }
    views
}

/// Sources in the order of the catalogue. One whose skills are all hidden comes in by what it lost.
fn ranks(catalog: &Catalog) -> HashMap<&str, u32> {
    let mut order: Vec<&str> = Vec::new();
    for entry in catalog.skills() {
        let label = entry.source_label();
        if order.last() != Some(&label) && !order.contains(&label) {
            order.push(label);
        }
    }
    for hidden in catalog.shadowed() {
        if !order.contains(&&*hidden.source) {
            let winner = order.iter().position(|label| *label == &*hidden.by_source).unwrap_or(0);
            order.insert(winner, &hidden.source);
        }
    }
    order.into_iter().zip(0..).collect()
}

/// For names that a later source took over, the place where they were first.
fn first_seen<'c>(catalog: &'c Catalog, ranks: &HashMap<&str, u32>) -> HashMap<&'c str, FirstSeen> {
    let mut firsts: HashMap<&str, FirstSeen> = HashMap::new();
    for hidden in catalog.shadowed() {
        let place = FirstSeen {
            source_rank: ranks.get(&*hidden.source).copied().unwrap_or(0),
            path: hidden.path.to_string_lossy().into(),
        };
        let first = firsts.entry(hidden.name.as_str()).or_insert_with(|| place.clone());
        if place.place() < first.place() {
            *first = place;
        }
    }
    firsts
}

fn view(entry: &SkillEntry, source_rank: u32, first_seen: Option<FirstSeen>) -> SkillView {
    let meta = &entry.meta;
    SkillView {
        name: meta.name.clone(),
        description: meta.description.clone(),
        path: entry.path().to_string_lossy().into(),
        source: entry.source_label().into(),
        owner: match entry.scope() {
            Scope::BuiltIn | Scope::User => Owner::User,
            Scope::Project => Owner::Project,
        },
        source_rank,
        first_seen: first_seen.map(Box::new),
        license: meta.license.clone(),
        compatibility: meta.compatibility.clone(),
        allowed_tools: meta.allowed_tools.clone().unwrap_or_default().into(),
        metadata: meta.metadata.iter().cloned().collect(),
        steering: steering(meta),
        grants: Default::default(),
        flatness: Default::default(),
    }
}

fn steering(meta: &SkillMeta) -> Option<Box<SteeringView>> {
    let text = |text: Option<&str>| text.map(Box::from);
    let steering = SteeringView {
        manual_only: meta.disable_model_invocation(),
        hidden_from_users: !meta.user_invocable(),
        argument_hint: text(meta.argument_hint()),
        model: text(meta.model()),
        context: text(meta.context()),
        hooks: meta.hooks().cloned().unwrap_or(Value::Null),
        ..SteeringView::default()
    };
    (steering != SteeringView::default()).then(|| Box::new(steering))
}
