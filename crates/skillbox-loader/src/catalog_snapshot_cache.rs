//! Builds catalog snapshots and keeps the latest one.
//!
//! Every turn of every session needs a snapshot of the catalog. With the cache, a session pays one pointer comparison per
//! skill for a catalog that has not changed, and rebuilds only the changed skills for one that has. Sessions that share
//! the cache also share the skill views in memory. The gain has not been measured separately.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use skillbox_repository::{Catalog, Scope, SkillEntry, SkillMeta};

use crate::catalog_snapshot::CatalogSnapshot;
use crate::skill_view::{InvocationSettings, ShadowedLocation, SkillGroup, SkillView};

/// The latest catalog and its snapshot.
#[derive(Debug, Default)]
pub struct CatalogSnapshotCache {
    latest: Mutex<Option<(Catalog, CatalogSnapshot)>>,
    /// Below this directory, the host writes the files of embedded skills.
    extracted_root: Option<PathBuf>,
}

impl CatalogSnapshotCache {
    /// Creates a cache whose snapshots show embedded skills at the paths where the host extracts them.
    pub fn with_extracted_skills(root: PathBuf) -> Self {
        Self {
            latest: Mutex::default(),
            extracted_root: Some(root),
        }
    }

    /// Returns the snapshot of a catalog.
    pub fn snapshot(&self, catalog: &Catalog) -> CatalogSnapshot {
        let mut cached = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((cached_catalog, snapshot)) = &*cached
            && has_same_entries(cached_catalog, catalog)
        {
            return snapshot.clone();
        }
        let views = self.build_views(catalog, cached.as_ref());
        let snapshot = CatalogSnapshot::new(views).with_source_count(catalog.source_count());
        *cached = Some((catalog.clone(), snapshot.clone()));
        snapshot
    }

    fn build_views(&self, catalog: &Catalog, cached: Option<&(Catalog, CatalogSnapshot)>) -> Vec<Arc<SkillView>> {
        let first_shadowed_by_name = find_first_shadowed(catalog);
        let mut views = Vec::with_capacity(catalog.len());
        for entry in catalog.skills() {
            let name = entry.name().as_str();
            let first = first_shadowed_by_name.get(name);
            let reusable = cached.and_then(|(cached_catalog, snapshot)| {
                let is_same_entry = cached_catalog.get(name).is_some_and(|old| std::ptr::eq(old, entry));
                let old = snapshot.get(name).filter(|_| is_same_entry)?;
                (old.first_shadowed.as_deref() == first).then(|| old.clone())
            });
            views.push(reusable.unwrap_or_else(|| Arc::new(self.build_view(entry, first.cloned()))));
        }
        views
    }

    fn build_view(&self, entry: &SkillEntry, first_shadowed: Option<ShadowedLocation>) -> SkillView {
        let meta = &entry.meta;
        SkillView {
            name: meta.name.clone(),
            description: meta.description.clone(),
            path: self.shown_path(entry).to_string_lossy().into(),
            source: entry.source_label().into(),
            group: match entry.scope() {
                Scope::BuiltIn | Scope::User => SkillGroup::User,
                Scope::Project => SkillGroup::Project,
            },
            source_rank: entry.source_position(),
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

    /// The path of SKILL.md that a host can open.
    fn shown_path<'e>(&self, entry: &'e SkillEntry) -> Cow<'e, Path> {
        let extracted = self
            .extracted_root
            .as_deref()
            .and_then(|root| entry.extracted_dir(root));
        match extracted {
            Some(dir) => Cow::Owned(dir.join(entry.skill_md_name())),
            None => Cow::Borrowed(entry.skill_md_path()),
        }
    }
}

/// A refreshed catalog shares its unchanged entries with the previous one, so comparing pointers is enough.
fn has_same_entries(a: &Catalog, b: &Catalog) -> bool {
    a.len() == b.len() && a.skills().zip(b.skills()).all(|(a, b)| std::ptr::eq(a, b))
}

/// For each name, finds the first of the skills that are shadowed.
fn find_first_shadowed(catalog: &Catalog) -> HashMap<&str, ShadowedLocation> {
    let mut firsts: HashMap<&str, ShadowedLocation> = HashMap::new();
    for shadowed in catalog.shadowed() {
        let location = ShadowedLocation {
            source_rank: shadowed.source_position,
            path: shadowed.path.to_string_lossy().into(),
        };
        let first = firsts.entry(shadowed.name.as_str()).or_insert_with(|| location.clone());
        if location.position() < first.position() {
            *first = location;
        }
    }
    firsts
}

fn build_invocation(meta: &SkillMeta) -> Option<Box<InvocationSettings>> {
    let boxed = |text: Option<&str>| text.map(Box::from);
    let invocation = InvocationSettings {
        manual_only: meta.disable_model_invocation(),
        hidden_from_users: !meta.user_invocable(),
        argument_hint: boxed(meta.argument_hint()),
        model: boxed(meta.model()),
        context: boxed(meta.context()),
        agent: boxed(meta.agent()),
        hooks: meta.hooks().cloned().unwrap_or(Value::Null),
        ..InvocationSettings::default()
    };
    (invocation != InvocationSettings::default()).then(|| Box::new(invocation))
}
