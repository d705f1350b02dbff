//! Logs how many skills each source has, by level, in the words of Spring AI Alibaba's registry.

use super::scanned_source::ScannedSource;
use crate::catalog::Catalog;
use crate::skill::{Scope, Source};

/// Logs one line for each source that exists, and the number of skills after merging.
pub(super) fn log_loaded_sources(sources: &[ScannedSource], catalog: &Catalog) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    for scanned in sources {
        let is_missing = !matches!(scanned.source, Source::Embedded(_)) && !scanned.info.root.exists();
        if is_missing {
            continue;
        }
        let skills = scanned.dirs.iter().filter(|dir| dir.skill().is_some()).count();
        let (level, source) = (level_name(scanned.info.scope), &*scanned.info.label);
        tracing::info!(skills, level, source, "Loaded {skills} {level} skills from {source}");
    }
    let skills = catalog.len();
    tracing::info!(skills, "Skills reloaded: {skills} total skills");
}

fn level_name(scope: Scope) -> &'static str {
    match scope {
        Scope::BuiltIn => "built-in",
        Scope::User => "user-level",
        Scope::Project => "project-level",
    }
}
