//! Small skills for unit tests.

use skillbox_model::SkillName;

use crate::skill_view::{Owner, SkillView};

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
