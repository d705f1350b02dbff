//! The one place that knows the YAML parser.

use serde::de::DeserializeOwned;

/// A value with the place it was written at.
pub(super) type At<T> = serde_yaml::Spanned<T>;

/// A place in a profile's file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub line: u32,
    pub column: u32,
}

/// Why a text is not the document it should be.
#[derive(Debug)]
pub(super) struct YamlError {
    pub place: Option<Place>,
    pub message: String,
}

/// Far above any sensible profile, far below what would hurt.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 16;

/// Reads one document. Anchors, aliases and merge keys have no place in a policy.
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
        place: error.location().and_then(place_of_location),
        message: message(&error),
    })
}

/// Where a value was written.
pub(super) fn place<T>(value: &At<T>) -> Option<Place> {
    place_of_location(value.referenced)
}

fn place_of_location(location: serde_yaml::Location) -> Option<Place> {
    let line = u32::try_from(location.line()).ok().filter(|line| *line > 0)?;
    let column = u32::try_from(location.column()).unwrap_or(1).max(1);
    Some(Place { line, column })
}

/// The parser's message without its excerpt and without the place, which the diagnostic carries itself.
fn message(error: &serde_yaml::Error) -> String {
    let text = error.without_snippet().to_string();
    let first_line = text.lines().next().unwrap_or_default();
    match first_line.rfind(" at line ") {
        Some(cut) => first_line[..cut].to_owned(),
        None => first_line.to_owned(),
    }
}
