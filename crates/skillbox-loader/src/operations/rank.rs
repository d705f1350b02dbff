//! Ranks skills by how well they match a query.

use crate::skill_view::SkillView;

/// Ranks a match: 0 exact name, 1 name prefix, 2 part of the name, 3 description or path; `None` without a match.
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
    let other_texts = [&skill.description, &skill.path];
    other_texts
        .iter()
        .any(|text| text.to_lowercase().contains(&query))
        .then_some(3)
}

/// Sorts the matching skills by rank, then by name. A blank query keeps all skills in their order.
pub(crate) fn rank_skills<'s, S: AsRef<SkillView> + 's>(
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
