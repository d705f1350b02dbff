//! Redacts a stream, whatever the sizes of its chunks.

use std::collections::BTreeSet;
use std::sync::Arc;

use skillbox_model::SecretName;

use super::pattern_set::PatternSet;
use super::view::{FoundRange, View};

/// Input is read in pieces of this size, so that the memory for positions stays small.
const PIECE_BYTES: usize = 8 << 10;

/// A stream whose secrets are replaced by `[secret NAME]`.
///
/// Bytes that may be the beginning of a secret are held back until the bytes after them decide. The result does not
/// depend on the chunks. Memory is bounded by the length of the longest secret.
pub struct RedactStream(Option<Box<State>>);

struct State {
    patterns: Arc<PatternSet>,
    plain: View,
    others: Vec<View>,
    /// The position after the last byte that was read.
    position: u64,
    /// The bytes from `held_from` to `position`.
    held: Vec<u8>,
    held_from: u64,
    /// The ranges to replace that are not written yet: in order, and none overlaps another.
    ranges: Vec<SecretRange>,
    found: BTreeSet<usize>,
}

/// A range of the source with at least one secret.
struct SecretRange {
    start: u64,
    end: u64,
    secrets: BTreeSet<usize>,
}

impl RedactStream {
    pub(super) fn new(patterns: Option<Arc<PatternSet>>) -> Self {
        Self(patterns.map(|patterns| {
            Box::new(State {
                plain: View::plain(&patterns),
                others: View::others(&patterns),
                patterns,
                position: 0,
                held: Vec::new(),
                held_from: 0,
                ranges: Vec::new(),
                found: BTreeSet::new(),
            })
        }))
    }

    /// Reads a chunk, and appends to `output` what is decided.
    pub fn push(&mut self, chunk: &[u8], output: &mut Vec<u8>) {
        let Some(state) = &mut self.0 else {
            output.extend_from_slice(chunk);
            return;
        };
        for piece in chunk.chunks(PIECE_BYTES) {
            state.read(piece);
            state.write_decided(output);
        }
    }

    /// Ends the stream: appends to `output` what was held back.
    pub fn finish(&mut self, output: &mut Vec<u8>) {
        if let Some(state) = &mut self.0 {
            state.finish(output);
        }
    }

    /// Whether nothing is held back.
    pub fn is_idle(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|state| state.held.is_empty() && state.ranges.is_empty())
    }

    /// The number of bytes in memory.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |state| state.held.len())
    }

    /// The secrets that were replaced so far.
    pub fn found(&self) -> Vec<SecretName> {
        let Some(state) = &self.0 else {
            return Vec::new();
        };
        let names = state.patterns.names();
        state.found.iter().map(|&index| names[index].clone()).collect()
    }
}

impl State {
    fn read(&mut self, piece: &[u8]) {
        let mut found = Vec::new();
        for view in &mut self.others {
            view.read_before(&self.plain, &self.patterns, piece, self.position, &mut found);
        }
        self.plain.read(&self.patterns, piece, self.position, &mut found);
        self.position += piece.len() as u64;
        for view in &mut self.others {
            view.compare(&self.plain, &self.patterns);
        }
        self.held.extend_from_slice(piece);
        self.add_ranges(&found);
    }

    /// Merges the places found with those not written yet.
    fn add_ranges(&mut self, found: &[FoundRange]) {
        if found.is_empty() {
            return;
        }
        self.found.extend(found.iter().map(|place| place.secret));
        let added = found.iter().map(|place| SecretRange {
            start: place.start,
            end: place.end,
            secrets: BTreeSet::from([place.secret]),
        });
        let mut all: Vec<SecretRange> = std::mem::take(&mut self.ranges).into_iter().chain(added).collect();
        all.sort_by_key(|range| range.start);
        for range in all {
            match self.ranges.last_mut() {
                Some(last) if range.start < last.end => {
                    last.end = last.end.max(range.end);
                    last.secrets.extend(range.secrets);
                }
                _ => self.ranges.push(range),
            }
        }
    }

    fn finish(&mut self, output: &mut Vec<u8>) {
        let mut found = Vec::new();
        for view in &mut self.others {
            view.finish(&self.patterns, &mut found);
        }
        self.add_ranges(&found);
        self.write_until(self.position, output);
        // A later stream begins in the state of the start.
        self.plain = View::plain(&self.patterns);
        self.others = View::others(&self.patterns);
    }

    fn write_decided(&mut self, output: &mut Vec<u8>) {
        let views = std::iter::once(&self.plain).chain(&self.others);
        let hold_from = views.filter_map(|view| view.hold_from(&self.patterns)).min();
        self.write_until(hold_from.unwrap_or(self.position), output);
    }

    /// Writes what no later byte can change: everything before `decided`, and each range that ends there.
    fn write_until(&mut self, decided: u64, output: &mut Vec<u8>) {
        let first = self.held_from;
        let mut written = first;
        let mut ranges = std::mem::take(&mut self.ranges).into_iter().peekable();
        while let Some(range) = ranges.next_if(|range| range.start < decided) {
            if range.start > written {
                output.extend_from_slice(&self.held[offset(first, written)..offset(first, range.start)]);
            }
            if range.end > decided {
                // The range may grow. Its bytes are not needed, so that an endless range needs no memory.
                written = decided.max(written);
                self.ranges.push(range);
                break;
            }
            for &secret in &range.secrets {
                output.extend_from_slice(b"[secret ");
                output.extend_from_slice(self.patterns.names()[secret].as_str().as_bytes());
                output.push(b']');
            }
            written = range.end.max(written);
        }
        if self.ranges.is_empty() && written < decided {
            output.extend_from_slice(&self.held[offset(first, written)..offset(first, decided)]);
            written = decided;
        }
        self.ranges.extend(ranges);
        self.held.drain(..offset(first, written));
        self.held_from = written;
    }
}

/// The index of a position in the held bytes, which fit into memory.
fn offset(first: u64, position: u64) -> usize {
    usize::try_from(position.saturating_sub(first)).expect("held bytes fit into memory")
}
