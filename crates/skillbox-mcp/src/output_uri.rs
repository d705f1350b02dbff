//! `artifact://NAME@VERSION` and `workspace://PATH` as addresses: what a report names plainly, a client takes for a
//! URI, and refuses where it is none.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub(crate) const ARTIFACT: &str = "artifact://";
pub(crate) const WORKSPACE: &str = "workspace://";

/// Everything but what a path carries as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The address of a file that a report refers to.
pub(crate) fn uri_of(reference: &str) -> String {
    if let Some(path) = reference.strip_prefix(WORKSPACE) {
        return format!("{WORKSPACE}{}", utf8_percent_encode(path, ENCODED));
    }
    let Some(artifact) = reference.strip_prefix(ARTIFACT) else {
        return reference.to_owned();
    };
    match artifact.rsplit_once('@') {
        Some((name, version)) => format!("{ARTIFACT}{}@{version}", utf8_percent_encode(name, ENCODED)),
        None => format!("{ARTIFACT}{}", utf8_percent_encode(artifact, ENCODED)),
    }
}

/// What the rest of an address may mean: decoded, or as a report spells it.
pub(crate) fn meanings(rest: &str) -> Vec<String> {
    let decoded = percent_decode_str(rest).decode_utf8();
    let mut meanings: Vec<String> = decoded.into_iter().map(|text| text.into_owned()).collect();
    if meanings.first().is_none_or(|decoded| decoded != rest) {
        meanings.push(rest.to_owned());
    }
    meanings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_an_address_and_is_found_by_it() {
        for (reference, uri) in [
            ("workspace://out/chart.svg", "workspace://out/chart.svg"),
            ("workspace://out/a b%ü.txt", "workspace://out/a%20b%25%C3%BC.txt"),
            ("artifact://a:b@c d@3", "artifact://a%3Ab%40c%20d@3"),
        ] {
            assert_eq!(uri_of(reference), uri);
            let (scheme, rest) = uri.split_once("://").unwrap();
            assert_eq!(format!("{scheme}://{}", meanings(rest)[0]), reference);
        }
        assert_eq!(meanings("out/100%"), ["out/100%"]);
        assert_eq!(meanings("a%20b"), ["a b", "a%20b"]);
    }
}
