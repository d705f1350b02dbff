//! Of two equal keys of a mapping, the later one is used.

use std::collections::{HashMap, HashSet};

use super::node::{Content, Document, Node};

impl<'a> Document<'a> {
    /// A document without duplicate keys.
    pub(in crate::parse) fn with_unique_keys(mut root: Node<'a>) -> Self {
        let mut duplicate_keys = Vec::new();
        remove_all_duplicate_keys(&mut root, &mut duplicate_keys);
        Self {
            root: Some(root),
            duplicate_keys,
        }
    }
}

fn remove_all_duplicate_keys(node: &mut Node<'_>, replacing_keys: &mut Vec<usize>) {
    match &mut node.content {
        Content::Scalar(..) => {}
        Content::Sequence(items) => {
            for item in items {
                remove_all_duplicate_keys(item, replacing_keys);
            }
        }
        Content::Mapping(pairs) => {
            remove_duplicate_keys(pairs, replacing_keys);
            for (_, value) in pairs {
                remove_all_duplicate_keys(value, replacing_keys);
            }
        }
    }
}

/// Removes the pairs whose key a later, equal key replaces. The offsets of the later keys are added to
/// `replacing_keys`.
pub(super) fn remove_duplicate_keys(pairs: &mut Vec<(Node<'_>, Node<'_>)>, replacing_keys: &mut Vec<usize>) {
    if !has_equal_keys(pairs) {
        return;
    }
    let texts = || pairs.iter().map(|(key, _)| key.as_text());
    let last: HashMap<&str, usize> = texts().enumerate().filter_map(|(at, text)| Some((text?, at))).collect();
    let kept: Vec<bool> = texts()
        .enumerate()
        .map(|(at, text)| text.is_none_or(|text| last.get(text) == Some(&at)))
        .collect();
    let replacing: HashSet<usize> = texts()
        .zip(&kept)
        .filter(|(_, kept)| !**kept)
        .filter_map(|(text, _)| last.get(text?).copied())
        .collect();
    replacing_keys.extend(replacing.iter().map(|at| pairs[*at].0.start()));
    replacing_keys.sort_unstable();
    let mut kept = kept.into_iter();
    pairs.retain(|_| kept.next().unwrap_or(true));
}

fn has_equal_keys(pairs: &[(Node<'_>, Node<'_>)]) -> bool {
    let texts = || pairs.iter().filter_map(|(key, _)| key.as_text());
    if pairs.len() <= 16 {
        // Comparing a few keys is faster than hashing them.
        texts()
            .enumerate()
            .any(|(at, text)| texts().skip(at + 1).any(|other| other == text))
    } else {
        let mut seen = HashSet::with_capacity(pairs.len());
        texts().any(|text| !seen.insert(text))
    }
}
