//! Small skills for unit tests.

use std::sync::Arc;

use skillbox_model::SkillName;

use crate::skill_view::{Owner, SkillView};
use crate::snapshot::Snapshot;

/// A skill of a project.
pub(crate) fn view(name: &str, description: &str) -> SkillView {
    SkillView {
        name: SkillName::parse(name).unwrap(),
        description: description.into(),
        path: format!("/skills/{name}/SKILL.md").into(),
        source: "/skills".into(),
        owner: Owner::Project,
        source_rank: 0,
        first_seen: None,
        license: None,
        compatibility: None,
        allowed_tools: Box::default(),
        metadata: std::collections::BTreeMap::default(),
        steering: None,
    }
}

/// A snapshot of skills with these names and descriptions.
pub(crate) fn snapshot(skills: impl IntoIterator<Item = SkillView>) -> Snapshot {
    Snapshot::new(skills.into_iter().map(Arc::new))
}
