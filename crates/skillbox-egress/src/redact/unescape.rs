//! Decodes percent and backslash escapes byte by byte.

/// A decoded byte, or several bytes of one character, and the source bytes it stands for.
pub(super) struct Decoded {
    pub(super) bytes: [u8; 4],
    pub(super) length: usize,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Decoded {
    fn byte(byte: u8, start: u64, end: u64) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            length: 1,
            start,
            end,
        }
    }

    fn character(character: char, start: u64, end: u64) -> Self {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Self {
            bytes,
            length,
            start,
            end,
        }
    }
}

/// What is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeKind {
    /// `%41`.
    Percent,
    /// `\u0041`, `\x41`, `\"` and the other escapes of JSON.
    Backslash,
}

impl EscapeKind {
    pub(super) fn first_byte(self) -> u8 {
        match self {
            Self::Percent => b'%',
            Self::Backslash => b'\\',
        }
    }

    fn classify(self, read: &[u8]) -> Escape {
        match self {
            Self::Percent => classify_hex(read, 1, 2),
            Self::Backslash => classify_backslash(read),
        }
    }
}

/// What the bytes read so far are.
enum Escape {
    Incomplete,
    Invalid,
    Byte(u8),
    Character(char),
}

fn classify_hex(read: &[u8], prefix: usize, digits: usize) -> Escape {
    let read = &read[prefix..];
    match parse_hex(read) {
        None => Escape::Invalid,
        Some(_) if read.len() < digits => Escape::Incomplete,
        Some(value) => u8::try_from(value).map_or(Escape::Invalid, Escape::Byte),
    }
}

fn classify_backslash(read: &[u8]) -> Escape {
    match read {
        [_] => Escape::Incomplete,
        [_, b'x', ..] => classify_hex(read, 2, 2),
        [_, b'u', ..] => classify_utf16(read),
        [_, byte @ (b'"' | b'\'' | b'\\' | b'/')] => Escape::Byte(*byte),
        [_, b'n'] => Escape::Byte(b'\n'),
        [_, b'r'] => Escape::Byte(b'\r'),
        [_, b't'] => Escape::Byte(b'\t'),
        [_, b'b'] => Escape::Byte(8),
        [_, b'f'] => Escape::Byte(12),
        _ => Escape::Invalid,
    }
}

/// `\u` and four digits, or two of them for a character beyond the basic plane.
fn classify_utf16(read: &[u8]) -> Escape {
    let Some(first) = parse_hex(&read[2..read.len().min(6)]) else {
        return Escape::Invalid;
    };
    if read.len() < 6 {
        return Escape::Incomplete;
    }
    if let Some(character) = char::from_u32(first) {
        return Escape::Character(character);
    }
    let is_second = read[6..].iter().zip(*b"\\u").all(|(byte, expected)| *byte == expected);
    if first >= 0xdc00 || !is_second {
        return Escape::Invalid;
    }
    if read.len() < 8 {
        return Escape::Incomplete;
    }
    match parse_hex(&read[8..]) {
        None => Escape::Invalid,
        Some(_) if read.len() < MAX_ESCAPE => Escape::Incomplete,
        Some(second @ 0xdc00..0xe000) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            char::from_u32(code).map_or(Escape::Invalid, Escape::Character)
        }
        Some(_) => Escape::Invalid,
    }
}

/// The value of hexadecimal digits; that of none is 0.
fn parse_hex(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |value, &byte| Some((value << 4) | char::from(byte).to_digit(16)?))
}

/// The length of the longest escape, `\ud83d\ude00`.
const MAX_ESCAPE: usize = 12;

/// Decodes a stream.
#[derive(Clone)]
pub(super) struct Unescape {
    kind: EscapeKind,
    pending: [u8; MAX_ESCAPE],
    pending_length: usize,
    /// The position of the first pending byte.
    pending_start: u64,
}

impl Unescape {
    pub(super) fn new(kind: EscapeKind) -> Self {
        Self {
            kind,
            pending: [0; MAX_ESCAPE],
            pending_length: 0,
            pending_start: 0,
        }
    }

    pub(super) fn kind(&self) -> EscapeKind {
        self.kind
    }

    /// The position of an escape that is not complete.
    pub(super) fn pending_start(&self) -> Option<u64> {
        (self.pending_length > 0).then_some(self.pending_start)
    }

    /// Reads the byte at `position`.
    pub(super) fn read(&mut self, byte: u8, position: u64, emit: &mut impl FnMut(Decoded)) {
        if self.pending_length == 0 {
            if byte != self.kind.first_byte() {
                return emit(Decoded::byte(byte, position, position + 1));
            }
            self.pending_start = position;
        }
        self.pending[self.pending_length] = byte;
        self.pending_length += 1;
        let (start, end) = (self.pending_start, position + 1);
        match self.kind.classify(&self.pending[..self.pending_length]) {
            Escape::Incomplete => {}
            Escape::Byte(byte) => {
                self.pending_length = 0;
                emit(Decoded::byte(byte, start, end));
            }
            Escape::Character(character) => {
                self.pending_length = 0;
                emit(Decoded::character(character, start, end));
            }
            Escape::Invalid => self.skip_pending(emit),
        }
    }

    /// Treats what is pending as text.
    pub(super) fn finish(&mut self, emit: &mut impl FnMut(Decoded)) {
        while self.pending_length > 0 {
            self.skip_pending(emit);
        }
    }

    /// Emits the first pending byte as it is, and reads the others again: an escape may begin at one of them.
    fn skip_pending(&mut self, emit: &mut impl FnMut(Decoded)) {
        let (pending, length, start) = (self.pending, self.pending_length, self.pending_start);
        self.pending_length = 0;
        emit(Decoded::byte(pending[0], start, start + 1));
        for (&byte, position) in pending[1..length].iter().zip(start + 1..) {
            self.read(byte, position, emit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(kind: EscapeKind, text: &str) -> Vec<u8> {
        let mut unescape = Unescape::new(kind);
        let mut decoded = Vec::new();
        let mut emit = |part: Decoded| decoded.extend_from_slice(&part.bytes[..part.length]);
        for (&byte, position) in text.as_bytes().iter().zip(0..) {
            unescape.read(byte, position, &mut emit);
        }
        unescape.finish(&mut emit);
        decoded
    }

    #[test]
    fn escapes_are_decoded_and_everything_else_is_kept() {
        let percent = [
            ("a%41%4a%4A", "aAJJ"),
            ("%", "%"),
            ("%4", "%4"),
            ("%%41", "%A"),
            ("%4%41", "%4A"),
            ("%zz", "%zz"),
        ];
        for (text, expected) in percent {
            assert_eq!(decode(EscapeKind::Percent, text), expected.as_bytes(), "{text}");
        }
        let backslash = [
            (r"a\u0041\x42\/\\n", r"aAB/\n"),
            (r#"\"\'\n"#, "\"'\n"),
            (r"\q\", r"\q\"),
            (r"\u00", r"\u00"),
            (r"\u00\u0041", r"\u00A"),
            (r"\u00e4", "ä"),
            (r"\ud83d\ude00", "😀"),
            (r"\ud83dx", r"\ud83dx"),
            (r"\ud83d\u0041", r"\ud83dA"),
            (r"\ude00", r"\ude00"),
            (r"\x4\x41", r"\x4A"),
        ];
        for (text, expected) in backslash {
            assert_eq!(decode(EscapeKind::Backslash, text), expected.as_bytes(), "{text}");
        }
    }
}
