//! Matches a simple command against the pattern of an `allowed-tools` entry.

use super::shell_lexer::Word;
use super::wildcard::is_path_match;

/// A simple command and where it starts, which decides what its relative paths mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocatedCommand<'w> {
    pub(crate) words: &'w [Word],
    pub(crate) start_directory: StartDirectory,
}

/// The directory in which a command starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartDirectory {
    /// The tool's own default.
    Default,
    /// A directory of the caller's choice: `scripts/x.sh` may be a different file there.
    Custom,
}

/// A pattern such as `git:*`, `git add *` or `npm test`.
///
/// It matches words, not text: `git:*` matches the program `git` and no other program whose name starts with it. A word
/// that the shell would still expand is matched only by a final `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    words: Box<[Box<str>]>,
    /// Whether any further words may follow.
    allows_more_words: bool,
}

impl CommandPattern {
    pub(crate) fn parse(text: &str) -> Self {
        let prefix = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
        Self {
            words: prefix.unwrap_or(text).split_ascii_whitespace().map(Box::from).collect(),
            allows_more_words: prefix.is_some(),
        }
    }

    pub(crate) fn matches(&self, command: LocatedCommand<'_>) -> bool {
        let given = command.words.len();
        if given < self.words.len() || !self.allows_more_words && given > self.words.len() {
            return false;
        }
        let mut pairs = self.words.iter().zip(command.words);
        pairs.all(|(expected, word)| matches_word(expected, word, command.start_directory))
    }
}

fn matches_word(expected: &str, word: &Word, start_directory: StartDirectory) -> bool {
    let is_relative_path = word.text.contains('/') && !word.text.starts_with('/');
    let has_unknown_target = is_relative_path && start_directory == StartDirectory::Custom;
    if !word.is_literal || has_unknown_target {
        return false;
    }
    word.text == expected || expected.contains('*') && is_path_match(expected, &word.text)
}
