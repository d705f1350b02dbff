//! Plain names and plain English, as far as a list of words can check them.

use std::path::Path;

use super::rust_paths::identifiers_of;
use super::{assert_tidy, read, rust_files, shown};
use crate::workspace::{files_below, root};

/// Metaphors that a reader needs a glossary for. Compared with the words of an identifier: `give_birth`, `BirthOrder`.
const BANNED_IN_NAMES: &[&str] = &[
    "belongings",
    "bell",
    "birth",
    "catalogue",
    "chore",
    "doomed",
    "door",
    "doors",
    "everyday",
    "furnish",
    "housekeeping",
    "inbox",
    "keeper",
    "mail",
    "newborn",
    "patience",
    "rehearse",
    "room",
    "seat",
    "told",
    "understudy",
    "whoever",
];

/// Names of libraries that have a banned word.
const NAMES_OF_LIBRARIES: &[&str] = &["new_inbox"];

/// Phrases that say in a strange way what English has a common word for.
const BANNED_IN_PROSE: &[&str] = &[
    "is told",
    "are told",
    "was told",
    "were told",
    "be told",
    "whoever",
    "comes back",
    "come back",
    "the rooms",
    "the room of",
    "let go of",
    "catalogue",
    "goes on as",
    "of strangers",
];

#[test]
fn identifiers_have_no_banned_words() {
    assert_eq!(banned_words("GiveBirth"), ["birth"]);
    assert_eq!(banned_words("FRONT_DOORS"), ["doors"]);
    assert!(banned_words("outdoors_bellow_HTTPMailer2").is_empty());

    let mut complaints = Vec::new();
    for path in rust_files().into_iter().filter(|path| !is_this_list(path)) {
        let mut found: Vec<String> = identifiers_of(&read(&path))
            .into_iter()
            .filter(|identifier| !NAMES_OF_LIBRARIES.contains(&identifier.as_str()))
            .filter(|identifier| !banned_words(identifier).is_empty())
            .collect();
        found.sort();
        found.dedup();
        let file = path
            .with_extension("")
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        found.extend((!banned_words(&file).is_empty()).then(|| format!("the file name {file}")));
        complaints.extend(
            found
                .into_iter()
                .map(|identifier| format!("{}: {identifier}", shown(&path))),
        );
    }
    assert_tidy(complaints);
}

#[test]
fn prose_has_no_banned_phrases() {
    assert_eq!(
        banned_phrases("x\n// Whoever asks\n// is\n// told.\n"),
        [(2, "whoever"), (3, "is told")]
    );
    assert!(banned_phrases("He foretold it; the classroom.").is_empty());

    let texts = files_below(root()).into_iter().filter(|path| {
        let is_text = ["rs", "md", "yaml"]
            .iter()
            .any(|kind| path.extension().is_some_and(|extension| extension == *kind));
        is_text && !is_this_list(path) && !path.starts_with(root().join("skills"))
    });
    let mut complaints = Vec::new();
    for path in texts {
        let found = banned_phrases(&read(&path));
        complaints.extend(
            found
                .into_iter()
                .map(|(line, phrase)| format!("{}:{line}: {phrase}", shown(&path))),
        );
    }
    assert_tidy(complaints);
}

fn is_this_list(path: &Path) -> bool {
    path.ends_with("tests/it/tidy/plain_words.rs")
}

/// The banned words among the words of an identifier.
fn banned_words(identifier: &str) -> Vec<&'static str> {
    let words = words_of(identifier);
    BANNED_IN_NAMES
        .iter()
        .copied()
        .filter(|banned| words.iter().any(|word| word == banned))
        .collect()
}

/// `parse_HTTPMail` has the words parse, http, mail.
fn words_of(identifier: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let characters: Vec<char> = identifier.chars().collect();
    for (at, character) in characters.iter().enumerate() {
        let previous = at.checked_sub(1).map(|before| characters[before]);
        let next = characters.get(at + 1);
        let starts_word = match previous {
            None | Some('_') => true,
            Some(previous) => {
                let from_lower = character.is_uppercase() && !previous.is_uppercase();
                from_lower || character.is_uppercase() && next.is_some_and(|next| next.is_lowercase())
            }
        };
        if starts_word {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| *character != '_') {
            word.extend(character.to_lowercase());
        }
    }
    words
}

/// The banned phrases with their lines. A phrase may cross a line break inside a comment.
fn banned_phrases(text: &str) -> Vec<(usize, &'static str)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start().trim_start_matches(['/', '!', '#', '*']);
        let parts = line
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|part| !part.is_empty());
        words.extend(parts.map(|part| (index + 1, part.to_lowercase())));
    }
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for phrase in BANNED_IN_PROSE {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        let matches = words
            .windows(wanted.len())
            .filter(|window| window.iter().zip(&wanted).all(|((_, word), wanted)| word == wanted));
        found.extend(matches.map(|window| (window[0].0, *phrase)));
    }
    found.sort();
    found
}
