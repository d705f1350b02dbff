//! Captures the head and the tail of an output stream of any length.

use std::collections::VecDeque;

/// Captures a stream in bounded memory. The number of bytes received is exact.
#[derive(Debug)]
pub struct OutputCapture {
    capacity: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

/// A captured stream as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The head and the tail with an omission mark between them. Invalid UTF-8 is replaced.
    pub text: String,
    /// Whether bytes were omitted.
    pub truncated: bool,
    /// The size of the whole stream.
    pub total_bytes: u64,
    /// Whether invalid UTF-8 was replaced.
    pub has_replacements: bool,
}

impl OutputCapture {
    /// Creates a capture of at most `capacity` bytes: one half from the beginning, one half from the end.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(2),
            head: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
        }
    }

    /// The number of bytes received.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Appends the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        self.total_bytes += piece.len() as u64;
        let head_capacity = self.capacity / 2 - self.head.len();
        let (to_head, rest) = piece.split_at(piece.len().min(head_capacity));
        self.head.extend_from_slice(to_head);
        let tail_capacity = self.capacity - self.capacity / 2;
        let rest = &rest[rest.len().saturating_sub(tail_capacity)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(tail_capacity);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the text, with a mark where bytes were omitted.
    pub fn finish(self) -> CapturedOutput {
        let kept = self.head.len() + self.tail.len();
        let omitted = self.total_bytes - kept as u64;
        let tail: Vec<u8> = self.tail.into();
        if omitted == 0 {
            let whole = [self.head, tail].concat();
            let (text, has_replacements) = decode_lossy(&whole);
            return CapturedOutput {
                text,
                truncated: false,
                total_bytes: self.total_bytes,
                has_replacements,
            };
        }
        let head = trim_partial_char_at_end(&self.head);
        let tail = trim_partial_char_at_start(&tail);
        let omitted = self.total_bytes - (head.len() + tail.len()) as u64;
        let (head, head_replaced) = decode_lossy(head);
        let (tail, tail_replaced) = decode_lossy(tail);
        CapturedOutput {
            text: format!("{head}\n[… {omitted} bytes left out …]\n{tail}"),
            truncated: true,
            total_bytes: self.total_bytes,
            has_replacements: head_replaced || tail_replaced,
        }
    }
}

fn decode_lossy(bytes: &[u8]) -> (String, bool) {
    match String::from_utf8_lossy(bytes) {
        std::borrow::Cow::Borrowed(text) => (text.to_owned(), false),
        std::borrow::Cow::Owned(text) => (text, true),
    }
}

/// Removes an incomplete UTF-8 character at the end.
fn trim_partial_char_at_end(bytes: &[u8]) -> &[u8] {
    let start = bytes.len().saturating_sub(3);
    for index in (start..bytes.len()).rev() {
        let width = match bytes[index] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return bytes,
        };
        return if index + width > bytes.len() {
            &bytes[..index]
        } else {
            bytes
        };
    }
    bytes
}

/// Removes an incomplete UTF-8 character at the beginning.
fn trim_partial_char_at_start(bytes: &[u8]) -> &[u8] {
    let skip = bytes
        .iter()
        .take(3)
        .take_while(|byte| matches!(byte, 0x80..=0xbf))
        .count();
    &bytes[skip..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture(cap: usize, pieces: &[&[u8]]) -> CapturedOutput {
        let mut capture = OutputCapture::new(cap);
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn short_streams_are_captured_whole() {
        let kept = capture(8, &[b"abcd", b"efgh"]);
        assert_eq!(
            (kept.text.as_str(), kept.truncated, kept.total_bytes),
            ("abcdefgh", false, 8)
        );
    }

    #[test]
    fn long_streams_keep_both_ends_around_a_mark() {
        let kept = capture(8, &[b"abcd", b"efg", b"hij", b"klmnop"]);
        assert_eq!(kept.text, "abcd\n[… 8 bytes left out …]\nmnop");
        assert_eq!((kept.truncated, kept.total_bytes), (true, 16));
    }

    #[test]
    fn characters_are_not_split_by_the_cut() {
        let kept = capture(8, &["aéééééééé".as_bytes()]);
        assert!(!kept.has_replacements, "{}", kept.text);
        assert_eq!(kept.text, "aé\n[… 10 bytes left out …]\néé");
    }

    #[test]
    fn replaced_invalid_text_is_flagged() {
        let kept = capture(64, &[b"a\xff\0b"]);
        assert_eq!((kept.text.as_str(), kept.has_replacements), ("a\u{fffd}\0b", true));
    }

    proptest! {
        #[test]
        fn the_split_into_pieces_does_not_matter_and_memory_is_bounded(stream in proptest::collection::vec(any::<u8>(), 0..200), cut in 1_usize..7, cap in 2_usize..50) {
            let whole = capture(cap, &[&stream]);
            let mut capture = OutputCapture::new(cap);
            for piece in stream.chunks(cut) {
                capture.push(piece);
                prop_assert!(capture.head.len() + capture.tail.len() <= cap);
            }
            prop_assert_eq!(capture.finish(), whole);
        }
    }
}
