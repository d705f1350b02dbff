//! Finds the delimiters of the frontmatter of a SKILL.md.

use std::ops::Range;

use memchr::memchr2;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The result of searching the first bytes of a file for the end of the frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontmatterEnd {
    /// The frontmatter and its closing line are complete; later bytes do not matter.
    Complete {
        /// Offset of the body.
        body_offset: usize,
    },
    /// More bytes are needed. If there are no more, the caller must parse the bytes that it has.
    NeedMore,
    /// The file has no frontmatter, whatever bytes follow.
    NoFrontmatter,
}

/// Finds the end of the frontmatter in the first bytes of a file, so that the body need not be read.
///
/// If the body is UTF-8, parsing the bytes before `body_offset` gives the same metadata as parsing the whole file.
pub fn find_frontmatter_end(bytes: &[u8]) -> FrontmatterEnd {
    match find_delimiters(bytes, Extent::FilePrefix) {
        DelimiterSearch::Found(delimiters) => FrontmatterEnd::Complete {
            body_offset: delimiters.body_offset,
        },
        DelimiterSearch::Unclosed { .. } | DelimiterSearch::Undecided => FrontmatterEnd::NeedMore,
        DelimiterSearch::Absent => FrontmatterEnd::NoFrontmatter,
    }
}

/// Splits a text into its frontmatter, without the delimiters, and its body. Without frontmatter, the whole text is the
/// body.
pub fn split_frontmatter(text: &str) -> (&str, &str) {
    match find_delimiters(text.as_bytes(), Extent::WholeFile) {
        DelimiterSearch::Found(delimiters) => (&text[delimiters.yaml], &text[delimiters.body_offset..]),
        _ => ("", text.strip_prefix('\u{feff}').unwrap_or(text)),
    }
}

/// Whether the given bytes are the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    WholeFile,
    FilePrefix,
}

/// The result of the search for the delimiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DelimiterSearch {
    Found(Delimiters),
    /// There is an opening line, but no closing line.
    Unclosed {
        /// Offset of the opening line.
        opening: usize,
    },
    /// The file does not begin with an opening line.
    Absent,
    /// There are too few bytes to decide.
    Undecided,
}

/// The positions of both delimiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delimiters {
    /// The text between the delimiters.
    pub yaml: Range<usize>,
    /// Where the body begins.
    pub body_offset: usize,
    /// Whether the file begins with a byte order mark.
    pub has_bom: bool,
    /// Offset of a delimiter that is not alone at the start of its line, or that follows blank lines.
    pub odd_delimiter: Option<usize>,
}

/// A line, without its line break, and the offset of the next line.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
    is_terminated: bool,
}

/// Finds both delimiters.
///
/// A delimiter is a line of exactly three dashes, with optional trailing blanks. If a whole file has no such closing
/// line, an indented line or one with text after the dashes closes the frontmatter, because the reference tool accepts
/// these lines and they have no other meaning.
pub(super) fn find_delimiters(bytes: &[u8], extent: Extent) -> DelimiterSearch {
    let has_bom = bytes.starts_with(BOM);
    if !has_bom && extent == Extent::FilePrefix && BOM.starts_with(bytes) {
        return DelimiterSearch::Undecided;
    }
    let begin = if has_bom { BOM.len() } else { 0 };
    let mut opening = line_at(bytes, begin, extent);
    while opening.is_terminated && is_blank(&bytes[opening.start..opening.end]) {
        opening = line_at(bytes, opening.next, extent);
    }
    let first = &bytes[opening.start..opening.end];
    if !opening.is_terminated && extent == Extent::FilePrefix {
        let may_become_opening = is_blank(first) || b"---".starts_with(first) || is_delimiter(first);
        return if may_become_opening {
            DelimiterSearch::Undecided
        } else {
            DelimiterSearch::Absent
        };
    }
    if !is_delimiter(first) {
        return DelimiterSearch::Absent;
    }
    let odd_opening = (opening.start != begin).then_some(opening.start);
    let mut odd_closing = None;
    let mut at = opening.next;
    while at < bytes.len() {
        let line = line_at(bytes, at, extent);
        let text = &bytes[line.start..line.end];
        if is_delimiter(text) && (line.is_terminated || extent == Extent::WholeFile) {
            return DelimiterSearch::Found(Delimiters {
                yaml: opening.next..line.start,
                body_offset: line.next,
                has_bom,
                odd_delimiter: odd_opening,
            });
        }
        if odd_closing.is_none() && text.trim_ascii_start().starts_with(b"---") {
            odd_closing = Some(line);
        }
        at = line.next;
    }
    match odd_closing {
        Some(line) if extent == Extent::WholeFile => {
            let indent = bytes[line.start..line.end].len() - bytes[line.start..line.end].trim_ascii_start().len();
            let dashes = line.start + indent;
            let after = bytes[dashes..line.end].iter().take_while(|b| **b == b'-').count() + dashes;
            DelimiterSearch::Found(Delimiters {
                yaml: opening.next..line.start,
                body_offset: if is_blank(&bytes[after..line.end]) {
                    line.next
                } else {
                    after
                },
                has_bom,
                odd_delimiter: Some(dashes),
            })
        }
        _ => DelimiterSearch::Unclosed { opening: opening.start },
    }
}

/// Returns the line that begins at an offset. Lines end with LF, CR LF or CR.
fn line_at(bytes: &[u8], start: usize, extent: Extent) -> Line {
    let unterminated = Line {
        start,
        end: bytes.len(),
        next: bytes.len(),
        is_terminated: false,
    };
    let Some(found) = memchr2(b'\n', b'\r', &bytes[start..]) else {
        return unterminated;
    };
    let end = start + found;
    let next = match (bytes[end], bytes.get(end + 1)) {
        (b'\r', Some(b'\n')) => end + 2,
        // The line feed of this line break may be the first byte that was not read.
        (b'\r', None) if extent == Extent::FilePrefix => return Line { end, ..unterminated },
        _ => end + 1,
    };
    Line {
        start,
        end,
        next,
        is_terminated: true,
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| matches!(b, b' ' | b'\t'))
}

fn is_delimiter(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(is_blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_in_the_first_bytes() {
        let complete = |body_offset| FrontmatterEnd::Complete { body_offset };
        for (bytes, end) in [
            ("", FrontmatterEnd::NeedMore),
            ("\u{feff}", FrontmatterEnd::NeedMore),
            ("--", FrontmatterEnd::NeedMore),
            ("---", FrontmatterEnd::NeedMore),
            ("---x", FrontmatterEnd::NoFrontmatter),
            ("----\n", FrontmatterEnd::NoFrontmatter),
            ("# Title", FrontmatterEnd::NoFrontmatter),
            ("  \n\n", FrontmatterEnd::NeedMore),
            (" ---\n", FrontmatterEnd::NoFrontmatter),
            ("---\na: b\n", FrontmatterEnd::NeedMore),
            ("---\na: b\n---", FrontmatterEnd::NeedMore),
            ("---\na: b\n---\r", FrontmatterEnd::NeedMore),
            ("---\na: b\n---\n", complete(13)),
            ("---\na: b\n---\nbody", complete(13)),
            ("---\r\na: b\r\n---\r\nbody", complete(16)),
            ("---\ra: b\r---\rbody", complete(13)),
            ("\u{feff}--- \na: b\n--- \t\nbody", complete(19)),
            ("---\n---\n", complete(8)),
            ("---\na: |\n  ---\n----\n--- x\n---\n", complete(30)),
        ] {
            assert_eq!(find_frontmatter_end(bytes.as_bytes()), end, "{bytes:?}");
        }
    }

    #[test]
    fn frontmatter_and_body_are_split() {
        for (text, frontmatter, body) in [
            ("---\na: b\n---\nbody\n", "a: b\n", "body\n"),
            ("---\na: b\n---", "a: b\n", ""),
            ("\u{feff}---\r\na: b\r\n---\r\n\r\nbody", "a: b\r\n", "\r\nbody"),
            ("---\na: b\n  ---\nbody", "a: b\n", "body"),
            ("---\na: b\n---# Title\n", "a: b\n", "# Title\n"),
            ("# Title\n", "", "# Title\n"),
            ("\u{feff}# Title\n", "", "# Title\n"),
            ("---\nnever closed\n", "", "---\nnever closed\n"),
        ] {
            assert_eq!(split_frontmatter(text), (frontmatter, body), "{text:?}");
        }
    }
}
