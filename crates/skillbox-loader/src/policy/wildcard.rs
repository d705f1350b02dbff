//! Matches the two wildcards of `allowed-tools` without compiling patterns.

/// Matches a text; `*` matches any characters.
pub(crate) fn is_text_match(pattern: &str, text: &str) -> bool {
    matches(pattern.as_bytes(), text.as_bytes(), Star::CrossesSlashes)
}

/// Matches a path: `*` matches within one component, `**` across components. A path with `..` matches nothing.
pub(crate) fn is_path_match(pattern: &str, path: &str) -> bool {
    if path.split(['/', '\\']).any(|part| part == "..") {
        return false;
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let path = path.strip_prefix("./").unwrap_or(path);
    matches(pattern.as_bytes(), path.as_bytes(), Star::StaysInComponent)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Star {
    CrossesSlashes,
    StaysInComponent,
}

/// Where to resume when the text after a star does not match.
#[derive(Clone, Copy)]
struct Retry {
    pattern: usize,
    text: usize,
    crosses_slashes: bool,
}

/// Linear in practice: each kind of star keeps only its last retry position.
fn matches(pattern: &[u8], text: &[u8], star: Star) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut within: Option<Retry> = None;
    let mut across: Option<Retry> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            let is_double = pattern.get(p + 1) == Some(&b'*');
            let crosses_slashes = is_double || star == Star::CrossesSlashes;
            p += if is_double { 2 } else { 1 };
            let retry = Retry {
                pattern: p,
                text: t,
                crosses_slashes,
            };
            if crosses_slashes {
                (across, within) = (Some(retry), None);
            } else {
                within = Some(retry);
            }
            continue;
        }
        if t == text.len() && p == pattern.len() {
            return true;
        }
        if t < text.len() && p < pattern.len() && pattern[p] == text[t] {
            (p, t) = (p + 1, t + 1);
            continue;
        }
        let Some((next_p, next_t)) = extend_star(&mut within, text).or_else(|| {
            within = None;
            extend_star(&mut across, text)
        }) else {
            return false;
        };
        (p, t) = (next_p, next_t);
    }
}

/// Extends the star by one byte, if allowed, and returns where to resume.
fn extend_star(retry: &mut Option<Retry>, text: &[u8]) -> Option<(usize, usize)> {
    let retry = retry.as_mut()?;
    let next = *text.get(retry.text)?;
    if next == b'/' && !retry.crosses_slashes {
        return None;
    }
    retry.text += 1;
    Some((retry.pattern, retry.text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_match_as_documented() {
        let check = |pattern: &str, path: &str, expected: bool| {
            assert_eq!(is_path_match(pattern, path), expected, "{pattern} {path}");
        };
        check("a", "a", true);
        check("*.md", "x.md", true);
        check("*.md", "a/x.md", false);
        check("**/*.md", "a/b/x.md", true);
        check("docs/*", "docs/", true);
        check("./docs/*", "docs/x", true);
        check("docs/**", "docs/a/../../x", false);
        check("a*b*c", "aXbYc", true);
        check("a*b*c", "aXbY", false);
        check("**", "anything/at/all", true);
        assert!(is_text_match("a*c", "a/b/c"));
        assert!(!is_text_match("a*", "ba"));
    }

    /// The definition, in its slow and plain form.
    fn oracle(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', b'*', rest @ ..] => (0..=text.len()).any(|n| oracle(rest, &text[n..])),
            [b'*', rest @ ..] => {
                let reach = text.iter().position(|b| *b == b'/').unwrap_or(text.len());
                (0..=reach).any(|n| oracle(rest, &text[n..]))
            }
            [first, rest @ ..] => text.first() == Some(first) && oracle(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_definition(pattern in "[ab/*]{0,8}", text in "[ab/]{0,8}") {
            let fast = matches(pattern.as_bytes(), text.as_bytes(), Star::StaysInComponent);
            prop_assert_eq!(fast, oracle(pattern.as_bytes(), text.as_bytes()), "{} {}", pattern, text);
        }
    }
}
