//! Suggests the correct name for a misspelled one.

/// Jaro-Winkler similarity above which a name is suggested.
const MIN_SIMILARITY: f64 = 0.85;

/// The candidate most similar to a word, if one is similar enough.
pub(super) fn closest_name<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity > MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
