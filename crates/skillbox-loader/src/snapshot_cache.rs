//! Builds catalog snapshots and keeps the latest one.
//!
//! Every turn of every session needs a snapshot of the catalog. With the cache, a session pays one pointer comparison per
//! skill for a catalog that has not changed, and rebuilds only the changed skills for one that has. Sessions that share
//! the cache also share the skill views in memory. The gain has not been measured separately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use skillbox_repository::{Catalog, Scope, SkillEntry, SkillMeta};

use crate::catalog_snapshot::CatalogSnapshot;
use crate::skill_view::{InvocationSettings, ShadowedLocation, SkillGroup, SkillView};

/// The latest catalog and its snapshot.
#[derive(Debug, Default)]
pub struct SnapshotCache(Mutex<Option<(Catalog, CatalogSnapshot)>>);

impl SnapshotCache {
    /// Returns the snapshot of a catalog.
    pub fn snapshot(&self, catalog: &Catalog) -> CatalogSnapshot {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((cached_catalog, snapshot)) = &*cached
            && has_same_entries(cached_catalog, catalog)
        {
            return snapshot.clone();
        }
        let snapshot = CatalogSnapshot::new(build_views(catalog, cached.as_ref()));
        *cached = Some((catalog.clone(), snapshot.clone()));
        snapshot
    }
}

/// A refreshed catalog shares its unchanged entries with the previous one, so comparing pointers is enough.
fn has_same_entries(a: &Catalog, b: &Catalog) -> bool {
    a.len() == b.len() && a.skills().zip(b.skills()).all(|(a, b)| std::ptr::eq(a, b))
}

fn build_views(catalog: &Catalog, cached: Option<&(Catalog, CatalogSnapshot)>) -> Vec<Arc<SkillView>> {
    let ranks = rank_sources(catalog);
    let first_shadowed_by_name = find_first_shadowed(catalog, &ranks);
    let mut views = Vec::with_capacity(catalog.len());
    for entry in catalog.skills() {
        let name = entry.name().as_str();
        let source_rank = ranks.get(entry.source_label()).copied().unwrap_or(0);
        let first = first_shadowed_by_name.get(name);
        let reusable = cached.and_then(|(cached_catalog, snapshot)| {
            let is_same_entry = cached_catalog.get(name).is_some_and(|old| std::ptr::eq(old, entry));
            let old = snapshot.get(name).filter(|_| is_same_entry)?;
            (old.source_rank == source_rank && old.first_shadowed.as_deref() == first).then(|| old.clone())
        });
        views.push(reusable.unwrap_or_else(|| Arc::new(build_view(entry, source_rank, first.cloned()))));
    }
    views
}

/// Ranks the sources in catalog order. A source whose skills are all shadowed ranks directly before the source that
/// shadows them.
fn rank_sources(catalog: &Catalog) -> HashMap<&str, u32> {
    let mut order: Vec<&str> = Vec::new();
    for entry in catalog.skills() {
        let label = entry.source_label();
        if order.last() != Some(&label) && !order.contains(&label) {
            order.push(label);
        }
    }
    for shadowed in catalog.shadowed() {
        if !order.contains(&&*shadowed.source) {
            let winner = order
                .iter()
                .position(|label| *label == &*shadowed.by_source)
                .unwrap_or(0);
            order.insert(winner, &shadowed.source);
        }
    }
    order.into_iter().zip(0..).collect()
}

/// For each name, finds the first of the skills that are shadowed.
fn find_first_shadowed<'c>(catalog: &'c Catalog, ranks: &HashMap<&str, u32>) -> HashMap<&'c str, ShadowedLocation> {
    let mut firsts: HashMap<&str, ShadowedLocation> = HashMap::new();
    for shadowed in catalog.shadowed() {
        let location = ShadowedLocation {
            source_rank: ranks.get(&*shadowed.source).copied().unwrap_or(0),
            path: shadowed.path.to_string_lossy().into(),
        };
        let first = firsts.entry(shadowed.name.as_str()).or_insert_with(|| location.clone());
        if location.position() < first.position() {
            *first = location;
        }
    }
    firsts
}

fn build_view(entry: &SkillEntry, source_rank: u32, first_shadowed: Option<ShadowedLocation>) -> SkillView {
    let meta = &entry.meta;
    SkillView {
        name: meta.name.clone(),
        description: meta.description.clone(),
        path: entry.skill_md_path().to_string_lossy().into(),
        source: entry.source_label().into(),
        group: match entry.scope() {
            Scope::BuiltIn | Scope::User => SkillGroup::User,
            Scope::Project => SkillGroup::Project,
        },
        source_rank,
        first_shadowed: first_shadowed.map(Box::new),
        license: meta.license.clone(),
        compatibility: meta.compatibility.clone(),
        allowed_tools: meta.allowed_tools.clone().unwrap_or_default().into(),
        metadata: meta.metadata.iter().cloned().collect(),
        invocation: build_invocation(meta),
        parsed_allowed_tools: Default::default(),
        sanitize_checks: Default::default(),
    }
}

fn build_invocation(meta: &SkillMeta) -> Option<Box<InvocationSettings>> {
    let boxed = |text: Option<&str>| text.map(Box::from);
    let invocation = InvocationSettings {
        manual_only: meta.disable_model_invocation(),
        hidden_from_users: !meta.user_invocable(),
        argument_hint: boxed(meta.argument_hint()),
        model: boxed(meta.model()),
        context: boxed(meta.context()),
        hooks: meta.hooks().cloned().unwrap_or(Value::Null),
        ..InvocationSettings::default()
    };
    (invocation != InvocationSettings::default()).then(|| Box::new(invocation))
}
