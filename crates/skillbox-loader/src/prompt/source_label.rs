//! The places that skills come from, as a prompt names them.

use std::fmt::Write as _;

use crate::one_line::one_line;

/// One source of skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// Its path, or another text that names it.
    pub path: String,
    /// What it is called before the word "Skills".
    pub label: String,
}

impl SourceView {
    /// A source whose label is made of its path: `~/.claude/skills` is "Claude".
    pub fn at(path: impl Into<String>) -> Self {
        let path = path.into();
        Self {
            label: label_of(&path),
            path,
        }
    }
}

fn label_of(path: &str) -> String {
    let normal = path.replace('\\', "/");
    let mut parts = normal.split('/').filter(|part| !part.is_empty() && *part != ".").rev();
    let Some(leaf) = parts.next() else {
        return "Unnamed".to_owned();
    };
    if leaf.eq_ignore_ascii_case("built_in_skills") {
        return "Built-in".to_owned();
    }
    // "Skills Skills" would say nothing, so the directory above gives the label.
    if leaf.eq_ignore_ascii_case("skills")
        && let Some(parent) = parts.next().map(|parent| parent.trim_start_matches('.'))
        && !parent.is_empty()
    {
        return title_case(&parent.replace(['_', '-'], " "));
    }
    let mut chars = leaf.chars();
    let first = chars.next().map(char::to_uppercase);
    first
        .into_iter()
        .flatten()
        .chain(chars.flat_map(char::to_lowercase))
        .collect()
}

fn title_case(text: &str) -> String {
    let mut after_letter = false;
    let mut titled = String::with_capacity(text.len());
    for c in text.chars() {
        if after_letter {
            titled.extend(c.to_lowercase());
        } else {
            titled.extend(c.to_uppercase());
        }
        after_letter = c.is_alphabetic();
    }
    titled
}

/// One line for each source; the last one's skills win.
pub(crate) fn locations(sources: &[SourceView]) -> String {
    let mut text = String::new();
    for (at, source) in sources.iter().enumerate() {
        let last = at + 1 == sources.len();
        let (mark, end) = if last { (" (higher priority)", "") } else { ("", "\n") };
        let (label, path) = (one_line(&source.label), one_line(&source.path));
        let _ = write!(text, "**{label} Skills**: `{path}`{mark}{end}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_from_the_path() {
        let check = |path: &str, expected: &str| assert_eq!(label_of(path), expected, "{path:?}");
        check("/home/me/.claude/skills", "Claude");
        check("/srv/my_team-x/skills/", "My Team X");
        check("/opt/built_in_skills", "Built-in");
        check("/x/my_custom", "My_custom");
        check("", "Unnamed");
        check("/", "Unnamed");
        check("skills", "Skills");
        check("./skills", "Skills");
        check("C:\\agent\\skills", "Agent");
        check("built-in", "Built-in");
    }

    #[test]
    fn exactly_one_source_has_priority() {
        let text = locations(&["/a/x", "/b/y", "/c/z"].map(SourceView::at));
        assert_eq!(
            text,
            "**X Skills**: `/a/x`\n**Y Skills**: `/b/y`\n**Z Skills**: `/c/z` (higher priority)"
        );
        assert_eq!(locations(&[]), "");
    }
}
