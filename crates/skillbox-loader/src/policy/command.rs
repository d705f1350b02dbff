//! One simple command held against the pattern of an entry.

use super::shell_words::Word;
use super::wildcard::is_path_match;

/// A simple command, and whether its relative paths mean what the skill's author meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invocation<'w> {
    pub(crate) words: &'w [Word],
    pub(crate) place: Place,
}

/// Where the command starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The tool's own default.
    Default,
    /// A directory that the caller chose: `scripts/x.sh` may be another file there.
    Chosen,
}

/// A pattern such as `git:*`, `git add *` or `npm test`.
///
/// It is held against words, not against text: `git:*` covers the program `git` and no other whose name begins
/// so, and a word that the shell would still expand is covered by a final `*` only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    words: Box<[Box<str>]>,
    /// Whether any words may follow.
    open_end: bool,
}

impl CommandPattern {
    pub(crate) fn parse(text: &str) -> Self {
        let prefix = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
        Self {
            words: prefix.unwrap_or(text).split_ascii_whitespace().map(Box::from).collect(),
            open_end: prefix.is_some(),
        }
    }

    pub(crate) fn covers(&self, invocation: Invocation<'_>) -> bool {
        let given = invocation.words.len();
        if given < self.words.len() || !self.open_end && given > self.words.len() {
            return false;
        }
        let mut pairs = self.words.iter().zip(invocation.words);
        pairs.all(|(expected, word)| fits(expected, word, invocation.place))
    }
}

fn fits(expected: &str, word: &Word, place: Place) -> bool {
    let moved = place == Place::Chosen && word.text.contains('/') && !word.text.starts_with('/');
    if !word.exact || moved {
        return false;
    }
    word.text == expected || expected.contains('*') && is_path_match(expected, &word.text)
}
