//! Small skills for unit tests.

use skillbox_model::SkillName;

use crate::skill_view::SkillView;

/// A skill of a project.
pub(crate) fn view(name: &str, description: &str) -> SkillView {
    let mut skill = SkillView::new(
        SkillName::parse(name).unwrap(),
        description,
        format!("/skills/{name}/SKILL.md"),
    );
    skill.source = "/skills".into();
    skill
}
