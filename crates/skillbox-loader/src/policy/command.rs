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

impl Invocation<'_> {
    /// Whether a pattern such as `git:*`, `git add *` or `npm test` covers the command.
    ///
    /// The pattern is held against words, not against text: `git:*` covers the program `git` and no other
    /// whose name begins so, and a word that the shell would still expand is covered by a final `*` only.
    pub(crate) fn is_covered_by(self, pattern: &str) -> bool {
        let (pattern, open_end) = match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
            Some(prefix) => (prefix, true),
            None => (pattern, false),
        };
        let mut words = self.words.iter();
        for expected in pattern.split_ascii_whitespace() {
            let fits = words.next().is_some_and(|word| self.word_fits(word, expected));
            if !fits {
                return false;
            }
        }
        open_end || words.next().is_none()
    }

    fn word_fits(self, word: &Word, expected: &str) -> bool {
        let moved = self.place == Place::Chosen && word.text.contains('/') && !word.text.starts_with('/');
        if !word.exact || moved {
            return false;
        }
        word.text == expected || expected.contains('*') && is_path_match(expected, &word.text)
    }
}
