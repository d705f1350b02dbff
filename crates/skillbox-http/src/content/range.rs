//! Parses the `Range` header.

use std::ops::Range;

/// The range of a file that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestedRange {
    /// The whole file: no range, or one that a server may ignore.
    Whole,
    /// A byte range.
    Part(Range<u64>),
    /// A range outside of the file.
    Unsatisfiable,
}

/// Parses `bytes=A-B`, `bytes=A-` or `bytes=-N`; several ranges mean the whole file.
pub(super) fn parse_range(header: Option<&str>, size: u64) -> RequestedRange {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return RequestedRange::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else {
        return RequestedRange::Whole;
    };
    let number = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<u64>())
    };
    let (start, end) = match (first, last) {
        ("", count) => match number(count) {
            Some(Ok(count)) => (size.saturating_sub(count), size),
            _ => return RequestedRange::Whole,
        },
        (first, "") => match number(first) {
            Some(Ok(first)) => (first, size),
            _ => return RequestedRange::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(Ok(first)), Some(Ok(last))) if first <= last => (first, last.saturating_add(1).min(size)),
            _ => return RequestedRange::Whole,
        },
    };
    if start >= end {
        return RequestedRange::Unsatisfiable;
    }
    RequestedRange::Part(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_in_rfc_9110() {
        let check =
            |header: &str, expected: RequestedRange| assert_eq!(parse_range(Some(header), 10), expected, "{header}");
        check("bytes=0-3", RequestedRange::Part(0..4));
        check("bytes=4-", RequestedRange::Part(4..10));
        check("bytes=-3", RequestedRange::Part(7..10));
        check("bytes=-30", RequestedRange::Part(0..10));
        check("bytes=8-99", RequestedRange::Part(8..10));
        check("bytes=10-", RequestedRange::Unsatisfiable);
        check("bytes=-0", RequestedRange::Unsatisfiable);
        check("bytes=3-1", RequestedRange::Whole);
        check("bytes=0-1,4-5", RequestedRange::Whole);
        check("bytes=x-", RequestedRange::Whole);
        check("lines=0-1", RequestedRange::Whole);
        check("bytes=99999999999999999999-", RequestedRange::Whole);
        assert_eq!(parse_range(None, 10), RequestedRange::Whole);
        assert_eq!(parse_range(Some("bytes=0-"), 0), RequestedRange::Unsatisfiable);
    }
}
