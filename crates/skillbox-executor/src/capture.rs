//! Keeping the head and the tail of a stream, whatever its length.

use std::collections::VecDeque;

/// What a stream gave: bounded in memory, exact in its counts.
#[derive(Debug)]
pub struct Capture {
    cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// A captured stream as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Head and tail around a mark, invalid UTF-8 replaced.
    pub text: String,
    /// Whether something was left out.
    pub truncated: bool,
    /// All bytes of the stream.
    pub bytes: u64,
    /// Whether invalid UTF-8 was replaced.
    pub replaced: bool,
}

impl Capture {
    /// Keeps at most `cap` bytes: half from the beginning, half from the end.
    pub fn new(cap: usize) -> Self {
        Self {
            cap: cap.max(2),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Bytes so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Takes the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        let head_room = self.cap / 2 - self.head.len();
        let (to_head, rest) = piece.split_at(piece.len().min(head_room));
        self.head.extend_from_slice(to_head);
        let tail_cap = self.cap - self.cap / 2;
        let rest = &rest[rest.len().saturating_sub(tail_cap)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(tail_cap);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// The text, with a mark where something was left out.
    pub fn finish(self) -> Captured {
        let kept = self.head.len() + self.tail.len();
        let left_out = self.total - kept as u64;
        let tail: Vec<u8> = self.tail.into();
        if left_out == 0 {
            let whole = [self.head, tail].concat();
            let (text, replaced) = to_text(&whole);
            return Captured {
                text,
                truncated: false,
                bytes: self.total,
                replaced,
            };
        }
        let head = without_cut_end(&self.head);
        let tail = without_cut_start(&tail);
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let (head, head_replaced) = to_text(head);
        let (tail, tail_replaced) = to_text(tail);
        Captured {
            text: format!("{head}\n[… {left_out} bytes left out …]\n{tail}"),
            truncated: true,
            bytes: self.total,
            replaced: head_replaced || tail_replaced,
        }
    }
}

fn to_text(bytes: &[u8]) -> (String, bool) {
    match String::from_utf8_lossy(bytes) {
        std::borrow::Cow::Borrowed(text) => (text.to_owned(), false),
        std::borrow::Cow::Owned(text) => (text, true),
    }
}

/// Drops the beginning of a character that the cut went through.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
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

/// Drops the rest of a character that the cut went through.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
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

    fn captured(cap: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(cap);
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn short_streams_are_kept_whole() {
        let kept = captured(8, &[b"abcd", b"efgh"]);
        assert_eq!((kept.text.as_str(), kept.truncated, kept.bytes), ("abcdefgh", false, 8));
    }

    #[test]
    fn long_streams_keep_both_ends_around_a_mark() {
        let kept = captured(8, &[b"abcd", b"efg", b"hij", b"klmnop"]);
        assert_eq!(kept.text, "abcd\n[… 8 bytes left out …]\nmnop");
        assert_eq!((kept.truncated, kept.bytes), (true, 16));
    }

    #[test]
    fn characters_are_not_split_by_the_cut() {
        let kept = captured(8, &["aéééééééé".as_bytes()]);
        assert!(!kept.replaced, "{}", kept.text);
        assert_eq!(kept.text, "aé\n[… 10 bytes left out …]\néé");
    }

    #[test]
    fn invalid_text_is_replaced_and_said() {
        let kept = captured(64, &[b"a\xff\0b"]);
        assert_eq!((kept.text.as_str(), kept.replaced), ("a\u{fffd}\0b", true));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter_and_memory_is_bounded(stream in proptest::collection::vec(any::<u8>(), 0..200), cut in 1_usize..7, cap in 2_usize..50) {
            let whole = captured(cap, &[&stream]);
            let mut capture = Capture::new(cap);
            for piece in stream.chunks(cut) {
                capture.push(piece);
                prop_assert!(capture.head.len() + capture.tail.len() <= cap);
            }
            prop_assert_eq!(capture.finish(), whole);
        }
    }
}
