//! A source of skills as prompts show it.

/// One source of skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// Its path, or another text that identifies it.
    pub path: String,
    /// The label that prompts put before the word "Skills".
    pub label: String,
}

impl SourceView {
    /// Creates a source and derives its label from the path: `~/.claude/skills` gives "Claude".
    pub fn from_path(path: impl Into<String>) -> Self {
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
    // The label "Skills" would read "Skills Skills" in a prompt, so the parent directory gives the label.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_from_paths() {
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
}
