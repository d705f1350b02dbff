//! Summarises the resources of a skill.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::state::{ResourceType, ResourceView};

/// Counts resources by type, in alphabetical order: `1 reference, 2 scripts`.
pub(crate) fn resource_summary(resources: &[ResourceView]) -> String {
    let mut counts: BTreeMap<ResourceType, usize> = BTreeMap::new();
    for resource in resources {
        *counts.entry(resource.kind).or_default() += 1;
    }
    let mut summary = String::new();
    for (kind, count) in counts {
        let comma = if summary.is_empty() { "" } else { ", " };
        let plural = if count > 1 { "s" } else { "" };
        let _ = write!(summary, "{comma}{count} {}{plural}", kind.as_str());
    }
    summary
}
