//! One reading of the stream in which the forms are searched.

use aho_corasick::automaton::StateID;

use super::pattern_set::PatternSet;
use super::unescape::{EscapeKind, Unescape};

/// A place in the source where a form was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) secret: usize,
}

/// How the source is read.
#[derive(Clone)]
pub(super) enum Reading {
    /// As it is.
    Plain,
    /// Without the blanks, line breaks and colons that encoders put between groups.
    Joined { skipped: usize },
    /// With escapes decoded.
    Unescaped(Unescape),
}

/// Maximum number of separators in a row. An indented line of base64 has fewer.
const MAX_SEPARATORS: usize = 16;
/// A separator is skipped after this many bytes of a form. After a single byte it is not, since the end of many lines
/// would have to be held back. The octets of a dump have two digits.
const MIN_GROUP_BYTES: usize = 2;

/// The search in one reading.
#[derive(Clone)]
pub(super) struct View {
    reading: Reading,
    search: Search,
    /// Whether this reading does not differ from the plain one in anything that still matters. Then it follows it.
    is_plain: bool,
}

/// The state of the automaton, and where the bytes that it read last came from.
#[derive(Clone)]
struct Search {
    state: StateID,
    /// The start positions of the last bytes, as a ring.
    starts: Vec<u64>,
    count: usize,
}

impl Search {
    fn new(patterns: &PatternSet) -> Self {
        Self {
            state: patterns.start(),
            starts: vec![0; patterns.max_length().next_power_of_two()],
            count: 0,
        }
    }

    fn start_of_last(&self, bytes: usize) -> u64 {
        self.starts[self.count.wrapping_sub(bytes) & (self.starts.len() - 1)]
    }

    fn read(&mut self, patterns: &PatternSet, byte: u8, start: u64, end: u64, found: &mut Vec<FoundRange>) {
        let index = self.count & (self.starts.len() - 1);
        self.starts[index] = start;
        self.count = self.count.wrapping_add(1);
        self.state = patterns.next(self.state, byte);
        for form in patterns.found(self.state) {
            found.push(FoundRange {
                start: self.start_of_last(form.length),
                end,
                secret: form.secret,
            });
        }
    }

    /// The start of the longest possible beginning of a form.
    fn partial_start(&self, patterns: &PatternSet) -> Option<u64> {
        match patterns.depth(self.state) {
            0 => None,
            depth => Some(self.start_of_last(depth)),
        }
    }
}

impl View {
    pub(super) fn plain(patterns: &PatternSet) -> Self {
        Self::new(Reading::Plain, patterns)
    }

    /// The readings beside the plain one.
    pub(super) fn others(patterns: &PatternSet) -> Vec<Self> {
        [
            Reading::Joined { skipped: 0 },
            Reading::Unescaped(Unescape::new(EscapeKind::Percent)),
            Reading::Unescaped(Unescape::new(EscapeKind::Backslash)),
        ]
        .map(|reading| Self::new(reading, patterns))
        .into()
    }

    fn new(reading: Reading, patterns: &PatternSet) -> Self {
        Self {
            reading,
            search: Search::new(patterns),
            is_plain: true,
        }
    }

    /// Reads a piece that begins at `position`, before the plain view reads it.
    pub(super) fn read_before(
        &mut self,
        plain: &Self,
        patterns: &PatternSet,
        piece: &[u8],
        position: u64,
        found: &mut Vec<FoundRange>,
    ) {
        if self.is_plain {
            if !self.reading.changes(piece) {
                return;
            }
            self.search = plain.search.clone();
            self.is_plain = false;
        }
        self.read(patterns, piece, position, found);
    }

    /// Follows the plain view again if both have read the same beginning of a form from the same place.
    pub(super) fn compare(&mut self, plain: &Self, patterns: &PatternSet) {
        self.is_plain |= self.reading.is_idle()
            && self.search.state == plain.search.state
            && self.search.partial_start(patterns) == plain.search.partial_start(patterns);
    }

    pub(super) fn read(&mut self, patterns: &PatternSet, piece: &[u8], position: u64, found: &mut Vec<FoundRange>) {
        let search = &mut self.search;
        for (&byte, position) in piece.iter().zip(position..) {
            match &mut self.reading {
                Reading::Plain => search.read(patterns, byte, position, position + 1, found),
                Reading::Joined { skipped } => {
                    let is_skipped = is_separator(byte)
                        && *skipped < MAX_SEPARATORS
                        && patterns.depth(search.state) >= MIN_GROUP_BYTES;
                    if is_skipped {
                        *skipped += 1;
                    } else {
                        *skipped = 0;
                        search.read(patterns, byte, position, position + 1, found);
                    }
                }
                Reading::Unescaped(unescape) => unescape.read(byte, position, &mut |decoded| {
                    for &byte in &decoded.bytes[..decoded.length] {
                        search.read(patterns, byte, decoded.start, decoded.end, found);
                    }
                }),
            }
        }
    }

    /// Reads what was pending at the end of the stream.
    pub(super) fn finish(&mut self, patterns: &PatternSet, found: &mut Vec<FoundRange>) {
        if let Reading::Unescaped(unescape) = &mut self.reading {
            let search = &mut self.search;
            unescape.finish(&mut |decoded| {
                for &byte in &decoded.bytes[..decoded.length] {
                    search.read(patterns, byte, decoded.start, decoded.end, found);
                }
            });
        }
    }

    /// The position from which bytes have to be held back.
    pub(super) fn hold_from(&self, patterns: &PatternSet) -> Option<u64> {
        if self.is_plain && !matches!(self.reading, Reading::Plain) {
            return None;
        }
        let pending = match &self.reading {
            Reading::Unescaped(unescape) => unescape.pending_start(),
            Reading::Plain | Reading::Joined { .. } => None,
        };
        // A partial form begins before a pending escape.
        self.search.partial_start(patterns).or(pending)
    }
}

impl Reading {
    /// Whether this reading of the piece can differ from the plain one.
    fn changes(&self, piece: &[u8]) -> bool {
        match self {
            Self::Plain => false,
            Self::Joined { .. } => piece.iter().copied().any(is_separator),
            Self::Unescaped(unescape) => piece.contains(&unescape.kind().first_byte()),
        }
    }

    /// Whether nothing is pending.
    fn is_idle(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Joined { skipped } => *skipped == 0,
            Self::Unescaped(unescape) => unescape.pending_start().is_none(),
        }
    }
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':')
}
