//! Minimal skills for unit tests.

use skillbox_model::SkillName;

use crate::skill_view::SkillView;

/// A project skill with a path below `/skills`.
pub(crate) fn skill_view(name: &str, description: &str) -> SkillView {
    let mut skill = SkillView::new(
        SkillName::parse(name).unwrap(),
        description,
        format!("/skills/{name}/SKILL.md"),
    );
    skill.source = "/skills".into();
    skill
}
