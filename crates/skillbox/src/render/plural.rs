//! Counts with nouns.

/// A count with its noun, such as `2 skills`.
pub fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
