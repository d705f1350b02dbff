//! Converts `artifact://NAME@VERSION` and `workspace://PATH` references of reports into valid URIs and back. Clients reject
//! references with unescaped characters.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub(crate) const ARTIFACT_SCHEME: &str = "artifact://";
pub(crate) const WORKSPACE_SCHEME: &str = "workspace://";

/// The characters to be escaped: all but the unreserved ones and `/`.
const ESCAPED_CHARS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The URI of a file that a report refers to.
pub(crate) fn to_uri(reference: &str) -> String {
    if let Some(path) = reference.strip_prefix(WORKSPACE_SCHEME) {
        return format!("{WORKSPACE_SCHEME}{}", utf8_percent_encode(path, ESCAPED_CHARS));
    }
    let Some(artifact) = reference.strip_prefix(ARTIFACT_SCHEME) else {
        return reference.to_owned();
    };
    match artifact.rsplit_once('@') {
        Some((name, version)) => format!(
            "{ARTIFACT_SCHEME}{}@{version}",
            utf8_percent_encode(name, ESCAPED_CHARS)
        ),
        None => format!("{ARTIFACT_SCHEME}{}", utf8_percent_encode(artifact, ESCAPED_CHARS)),
    }
}

/// Separates a URI from the name of its session.
const SESSION_QUERY: &str = "?session=";

/// The URI of an output that names its session, for clients whose requests do not name it otherwise.
pub(crate) fn with_session(uri: &str, session: Option<&str>) -> String {
    match session {
        Some(session) if uri.starts_with(WORKSPACE_SCHEME) || uri.starts_with(ARTIFACT_SCHEME) => {
            format!("{uri}{SESSION_QUERY}{session}")
        }
        _ => uri.to_owned(),
    }
}

/// Splits the URI of an output from the name of its session, if it has one.
pub(crate) fn split_session(uri: &str) -> (&str, Option<&str>) {
    let is_output = uri.starts_with(WORKSPACE_SCHEME) || uri.starts_with(ARTIFACT_SCHEME);
    match uri.rsplit_once(SESSION_QUERY).filter(|_| is_output) {
        Some((uri, session)) => (uri, Some(session)),
        None => (uri, None),
    }
}

/// The references that a URI without its scheme may mean: its decoded form, or its literal text.
pub(crate) fn candidate_references(rest: &str) -> Vec<String> {
    let decoded = percent_decode_str(rest).decode_utf8();
    let mut candidates: Vec<String> = decoded.into_iter().map(|text| text.into_owned()).collect();
    if candidates.first().is_none_or(|decoded| decoded != rest) {
        candidates.push(rest.to_owned());
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_survive_the_round_trip_through_a_uri() {
        for (reference, uri) in [
            ("workspace://out/chart.svg", "workspace://out/chart.svg"),
            ("workspace://out/a b%ü.txt", "workspace://out/a%20b%25%C3%BC.txt"),
            ("artifact://a:b@c d@3", "artifact://a%3Ab%40c%20d@3"),
        ] {
            assert_eq!(to_uri(reference), uri);
            let (scheme, rest) = uri.split_once("://").unwrap();
            assert_eq!(format!("{scheme}://{}", candidate_references(rest)[0]), reference);
        }
        let uri = with_session("workspace://out/x", Some("name"));
        assert_eq!(uri, "workspace://out/x?session=name");
        assert_eq!(split_session(&uri), ("workspace://out/x", Some("name")));
        assert_eq!(split_session("skill://a/b?session=x"), ("skill://a/b?session=x", None));
        assert_eq!(candidate_references("out/100%"), ["out/100%"]);
        assert_eq!(candidate_references("a%20b"), ["a b", "a%20b"]);
    }
}
