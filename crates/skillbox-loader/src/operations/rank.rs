//! How well a skill answers a query, by name, description and path.

use crate::skill_view::SkillView;

/// 0 the name itself, 1 its beginning, 2 inside it, 3 description or path; none where nothing matches.
pub(crate) fn rank(skill: &SkillView, query: &str) -> Option<u8> {
    let query = query.trim().to_lowercase();
    let name = skill.name.as_str().to_lowercase();
    if query.is_empty() {
        return Some(3);
    }
    if name == query {
        return Some(0);
    }
    if name.starts_with(&query) {
        return Some(1);
    }
    if name.contains(&query) {
        return Some(2);
    }
    let elsewhere = [&skill.description, &skill.path];
    elsewhere
        .iter()
        .any(|text| text.to_lowercase().contains(&query))
        .then_some(3)
}

/// The matching skills, best first, of equal rank by name; a blank query keeps all in their order.
pub(crate) fn ranked<'s, S: AsRef<SkillView> + 's>(
    skills: impl Iterator<Item = &'s S>,
    query: &str,
) -> Vec<(u8, &'s S)> {
    let mut hits: Vec<(u8, &S)> = skills
        .filter_map(|skill| Some((rank(skill.as_ref(), query)?, skill)))
        .collect();
    if !query.trim().is_empty() {
        hits.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.as_ref().name.cmp(&y.as_ref().name)));
    }
    hits
}
