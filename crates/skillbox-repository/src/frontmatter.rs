//! Finds where the frontmatter of a SKILL.md begins and ends.

use std::ops::Range;

use memchr::memchr2;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// What the beginning of a file tells about its frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The frontmatter ends before this offset, the closing line included: no further byte matters to it.
    Complete {
        /// Offset of the body.
        end: usize,
    },
    /// The end has not been seen yet. At the end of the file, parse what there is.
    NeedMore,
    /// The file has no frontmatter, whatever follows.
    NoFrontmatter,
}

/// Looks for the end of the frontmatter in the first bytes of a file, so that bodies need not be read.
///
/// For a file whose body is UTF-8, parsing the bytes up to `end` gives the same metadata as parsing all of it.
pub fn frontmatter_end(bytes: &[u8]) -> Head {
    match locate(bytes, Extent::Beginning) {
        Located::Found(fences) => Head::Complete { end: fences.body },
        Located::Unclosed { .. } | Located::Undecided => Head::NeedMore,
        Located::Absent => Head::NoFrontmatter,
    }
}

/// Splits a text into its frontmatter without delimiters and its body; without frontmatter, all is body.
pub fn split_body(text: &str) -> (&str, &str) {
    match locate(text.as_bytes(), Extent::Whole) {
        Located::Found(fences) => (&text[fences.yaml], &text[fences.body..]),
        _ => ("", text.strip_prefix('\u{feff}').unwrap_or(text)),
    }
}

/// Whether bytes may follow those that are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Beginning,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    Found(Fences),
    /// The opening line is there, a closing one is not.
    Unclosed {
        opening: usize,
    },
    /// The file begins with something else.
    Absent,
    /// The bytes are too few to tell.
    Undecided,
}

/// The places of the two delimiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fences {
    /// What stands between the delimiters.
    pub yaml: Range<usize>,
    /// Where the body begins.
    pub body: usize,
    /// The file begins with a byte order mark.
    pub has_bom: bool,
    /// A delimiter that is not alone at the start of its line, or that blank lines precede.
    pub odd: Option<usize>,
}

/// One line: its text without the break, and the offset of the next line.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
    is_terminated: bool,
}

/// Finds both delimiters.
///
/// A delimiter is a line of exactly three dashes; blanks may follow. Where a whole file has no such closing line,
/// an indented or glued one closes: the reference tool accepts these, and nothing else can be meant.
pub(crate) fn locate(bytes: &[u8], extent: Extent) -> Located {
    let has_bom = bytes.starts_with(BOM);
    if !has_bom && extent == Extent::Beginning && BOM.starts_with(bytes) {
        return Located::Undecided;
    }
    let begin = if has_bom { BOM.len() } else { 0 };
    let mut opening = line_at(bytes, begin, extent);
    while opening.is_terminated && is_blank(&bytes[opening.start..opening.end]) {
        opening = line_at(bytes, opening.next, extent);
    }
    let first = &bytes[opening.start..opening.end];
    if !opening.is_terminated && extent == Extent::Beginning {
        let may_become_opening = is_blank(first) || b"---".starts_with(first) || is_delimiter(first);
        return if may_become_opening {
            Located::Undecided
        } else {
            Located::Absent
        };
    }
    if !is_delimiter(first) {
        return Located::Absent;
    }
    let odd_opening = (opening.start != begin).then_some(opening.start);
    let mut odd_closing = None;
    let mut at = opening.next;
    while at < bytes.len() {
        let line = line_at(bytes, at, extent);
        let text = &bytes[line.start..line.end];
        if is_delimiter(text) && (line.is_terminated || extent == Extent::Whole) {
            return Located::Found(Fences {
                yaml: opening.next..line.start,
                body: line.next,
                has_bom,
                odd: odd_opening,
            });
        }
        if odd_closing.is_none() && text.trim_ascii_start().starts_with(b"---") {
            odd_closing = Some(line);
        }
        at = line.next;
    }
    match odd_closing {
        Some(line) if extent == Extent::Whole => {
            let indent = bytes[line.start..line.end].len() - bytes[line.start..line.end].trim_ascii_start().len();
            let dashes = line.start + indent;
            let after = bytes[dashes..line.end].iter().take_while(|b| **b == b'-').count() + dashes;
            Located::Found(Fences {
                yaml: opening.next..line.start,
                body: if is_blank(&bytes[after..line.end]) {
                    line.next
                } else {
                    after
                },
                has_bom,
                odd: Some(dashes),
            })
        }
        _ => Located::Unclosed { opening: opening.start },
    }
}

/// The line that begins at an offset. Lines end with LF, CR LF or CR.
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
        // The line feed that belongs to this break may be the first byte that was not read.
        (b'\r', None) if extent == Extent::Beginning => return Line { end, ..unterminated },
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
    fn heads_are_told_from_what_was_read() {
        let complete = |end| Head::Complete { end };
        for (bytes, head) in [
            ("", Head::NeedMore),
            ("\u{feff}", Head::NeedMore),
            ("--", Head::NeedMore),
            ("---", Head::NeedMore),
            ("---x", Head::NoFrontmatter),
            ("----\n", Head::NoFrontmatter),
            ("# Title", Head::NoFrontmatter),
            ("  \n\n", Head::NeedMore),
            (" ---\n", Head::NoFrontmatter),
            ("---\na: b\n", Head::NeedMore),
            ("---\na: b\n---", Head::NeedMore),
            ("---\na: b\n---\r", Head::NeedMore),
            ("---\na: b\n---\n", complete(13)),
            ("---\na: b\n---\nbody", complete(13)),
            ("---\r\na: b\r\n---\r\nbody", complete(16)),
            ("---\ra: b\r---\rbody", complete(13)),
            ("\u{feff}--- \na: b\n--- \t\nbody", complete(19)),
            ("---\n---\n", complete(8)),
            ("---\na: |\n  ---\n----\n--- x\n---\n", complete(30)),
        ] {
            assert_eq!(frontmatter_end(bytes.as_bytes()), head, "{bytes:?}");
        }
    }

    #[test]
    fn bodies_are_split_off() {
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
            assert_eq!(split_body(text), (frontmatter, body), "{text:?}");
        }
    }
}
