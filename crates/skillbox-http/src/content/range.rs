//! The part of a file that a client asks for.

use std::ops::Range;

/// What a `Range` header means for a file of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Everything: no range, or one that we do not serve and may ignore.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Nothing of it is there.
    Nowhere,
}

/// Reads `bytes=A-B`, `bytes=A-` or `bytes=-N`; several ranges at once are answered with the whole.
pub(super) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else {
        return Wanted::Whole;
    };
    let number = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<u64>())
    };
    let (start, end) = match (first, last) {
        ("", count) => match number(count) {
            Some(Ok(count)) => (size.saturating_sub(count), size),
            _ => return Wanted::Whole,
        },
        (first, "") => match number(first) {
            Some(Ok(first)) => (first, size),
            _ => return Wanted::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(Ok(first)), Some(Ok(last))) if first <= last => (first, last.saturating_add(1).min(size)),
            _ => return Wanted::Whole,
        },
    };
    if start >= end {
        return Wanted::Nowhere;
    }
    Wanted::Part(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let check = |header: &str, expected: Wanted| assert_eq!(wanted(Some(header), 10), expected, "{header}");
        check("bytes=0-3", Wanted::Part(0..4));
        check("bytes=4-", Wanted::Part(4..10));
        check("bytes=-3", Wanted::Part(7..10));
        check("bytes=-30", Wanted::Part(0..10));
        check("bytes=8-99", Wanted::Part(8..10));
        check("bytes=10-", Wanted::Nowhere);
        check("bytes=-0", Wanted::Nowhere);
        check("bytes=3-1", Wanted::Whole);
        check("bytes=0-1,4-5", Wanted::Whole);
        check("bytes=x-", Wanted::Whole);
        check("lines=0-1", Wanted::Whole);
        check("bytes=99999999999999999999-", Wanted::Whole);
        assert_eq!(wanted(None, 10), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nowhere);
    }
}
