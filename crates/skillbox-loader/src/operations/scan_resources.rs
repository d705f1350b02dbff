//! Lists the resources of a skill, and logs the directories that cannot be listed.

use std::path::Path;

use skillbox_repository::{ResourceKind, ResourceListing, SkillDir, SkillReadError};

use crate::skill_view::SkillView;
use crate::state::{ResourceType, ResourceView};

/// Lists the resources of a skill. A directory that cannot be listed is one of the returned problems.
pub(crate) fn scan_resources(skill: &SkillView, dir: &SkillDir) -> (Vec<ResourceView>, Vec<String>) {
    let ResourceListing { resources, problems } = dir.list_resources();
    let resources = resources
        .into_iter()
        .filter(|resource| resource.path.to_str().is_some())
        .map(|resource| ResourceView {
            path: resource.path,
            kind: match resource.kind {
                ResourceKind::Script => ResourceType::Script,
                ResourceKind::Reference => ResourceType::Reference,
                ResourceKind::Asset => ResourceType::Asset,
                ResourceKind::Other => ResourceType::Other,
            },
        });
    let problems = problems.iter().map(|problem| {
        log_unlisted_directory(skill, problem);
        format!("cannot list the resources: {problem}")
    });
    (resources.collect(), problems.collect())
}

fn log_unlisted_directory(skill: &SkillView, problem: &SkillReadError) {
    let (name, directory) = (&skill.name, skill.directory());
    match problem {
        SkillReadError::Io { path, source } if path != Path::new(directory) => {
            tracing::warn!(skill = %name, error = %source, "Failed to list resources in {}", path.display());
        }
        problem => {
            tracing::warn!(skill = %name, error = %problem, "Failed to list resources for skill '{name}' at {directory}");
        }
    }
}
