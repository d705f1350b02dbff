//! The only module that uses the YAML parser.

use serde::de::DeserializeOwned;

/// A value with its location in the file.
pub(super) type Located<T> = serde_yaml::Spanned<T>;

/// A location in a profile file; lines and columns start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub line: u32,
    pub column: u32,
}

/// Why a text does not parse.
#[derive(Debug)]
pub(super) struct YamlError {
    pub location: Option<Location>,
    pub message: String,
}

/// The most YAML nodes in a file. The largest shipped profile has fewer than 1,000.
const MAX_NODES: usize = 20_000;
/// The deepest nesting in a file. The shipped profiles nest 4 levels deep.
const MAX_DEPTH: usize = 16;

/// Parses one document. Anchors, aliases and merge keys are refused.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let options = serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_documents: 1,
            max_nodes: MAX_NODES,
            max_depth: MAX_DEPTH,
            max_anchors: 0,
            max_aliases: 0,
        },
    };
    serde_yaml::from_str_with_options(text, options).map_err(|error| YamlError {
        location: error.location().and_then(to_location),
        message: short_message(&error),
    })
}

/// The location of a value.
pub(super) fn location<T>(value: &Located<T>) -> Option<Location> {
    to_location(value.referenced)
}

fn to_location(location: serde_yaml::Location) -> Option<Location> {
    let line = u32::try_from(location.line()).ok().filter(|line| *line > 0)?;
    let column = u32::try_from(location.column()).unwrap_or(1).max(1);
    Some(Location { line, column })
}

/// The parser's message without its excerpt and location, because the diagnostic has a location of its own.
fn short_message(error: &serde_yaml::Error) -> String {
    let text = error.without_snippet().to_string();
    let first_line = text.lines().next().unwrap_or_default();
    match first_line.rfind(" at line ") {
        Some(cut) => first_line[..cut].to_owned(),
        None => first_line.to_owned(),
    }
}
