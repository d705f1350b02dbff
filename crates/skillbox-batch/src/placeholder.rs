//! The placeholders of a job template: `{input}`, `{name}`, `{stem}` and `{index}`.

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placeholder {
    /// The path of the staged file inside the sandbox.
    Input,
    /// The name of the file.
    Name,
    /// The name without its last extension.
    Stem,
    /// The position of the file in the sorted list, from 1.
    Index,
}

/// A part of a text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Placeholder(Placeholder),
}

impl Placeholder {
    pub const ALL: [Self; 4] = [Self::Input, Self::Name, Self::Stem, Self::Index];

    /// The spelling in a template.
    pub fn token(self) -> &'static str {
        match self {
            Self::Input => "{input}",
            Self::Name => "{name}",
            Self::Stem => "{stem}",
            Self::Index => "{index}",
        }
    }

    /// The environment variable with the value, for shell command lines.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Input => "JOB_INPUT",
            Self::Name => "JOB_NAME",
            Self::Stem => "JOB_STEM",
            Self::Index => "JOB_INDEX",
        }
    }
}

/// Splits a text at its placeholders. `${name}` is a variable of the shell, not a placeholder.
pub(crate) fn split(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(offset) = text[at..].find('{') {
        let brace = at + offset;
        let found = Placeholder::ALL
            .into_iter()
            .find(|placeholder| text[brace..].starts_with(placeholder.token()));
        match found {
            Some(placeholder) if !text[..brace].ends_with('$') => {
                if start < brace {
                    pieces.push(Piece::Text(&text[start..brace]));
                }
                pieces.push(Piece::Placeholder(placeholder));
                start = brace + placeholder.token().len();
                at = start;
            }
            _ => at = brace + 1,
        }
    }
    if start < text.len() {
        pieces.push(Piece::Text(&text[start..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_four_names_in_braces_are_placeholders() {
        use Piece::{Placeholder as P, Text};
        assert_eq!(
            split("a {input}{stem}.x"),
            [Text("a "), P(Placeholder::Input), P(Placeholder::Stem), Text(".x")]
        );
        for text in ["{print $1}", "${name}", "{ input }", "{in{put}", "{", ""] {
            assert!(split(text).iter().all(|piece| matches!(piece, Text(_))), "{text}");
        }
        assert_eq!(split("{{index}}")[1], P(Placeholder::Index));
    }
}
