//! Frames on a byte stream: a length, a kind, a payload.
//!
//! File contents and output are raw bytes; everything else is an encoded message. A length over the limit is an error, so
//! that no peer can make the other allocate as much as it likes.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use skillbox_model::Stream;

/// The most bytes of one data frame.
pub const MAX_DATA: usize = 64 << 10;
/// The most bytes of one message: a command line with its environment is the largest.
const MAX_MESSAGE: usize = 8 << 20;
const HEADER_BYTES: usize = 5;

const MESSAGE: u8 = 0;
const DATA: u8 = 1;
const STDOUT: u8 = 2;
const STDERR: u8 = 3;

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// An encoded message.
    Message(Vec<u8>),
    /// A piece of a file or of standard input.
    Data(Vec<u8>),
    /// A piece of the output of the command.
    Output(Stream, Vec<u8>),
}

/// The other side sent an invalid frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The kind is unknown.
    #[error("the frame has the unknown kind {0}")]
    Kind(u8),
    /// The frame is longer than the limit.
    #[error("the frame is too long: {0} bytes")]
    Length(usize),
    /// The message cannot be decoded.
    #[error("the message cannot be decoded")]
    Message(#[from] postcard::Error),
}

/// Splits received bytes into frames. The buffer contains at most one incomplete frame and what was pushed with it.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    consumed: usize,
}

impl Frames {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, kind] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let limit = match kind {
            MESSAGE => MAX_MESSAGE,
            DATA | STDOUT | STDERR => MAX_DATA,
            kind => return Err(FrameError::Kind(kind)),
        };
        if length > limit {
            return Err(FrameError::Length(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.consumed += HEADER_BYTES + length;
        Ok(Some(match kind {
            MESSAGE => Frame::Message(payload),
            DATA => Frame::Data(payload),
            STDOUT => Frame::Output(Stream::Stdout, payload),
            _ => Frame::Output(Stream::Stderr, payload),
        }))
    }

    /// Decodes a message.
    pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
        Ok(postcard::from_bytes(bytes)?)
    }
}

/// Writes one message.
pub fn write_message<T: Serialize>(out: &mut impl Write, message: &T) -> io::Result<()> {
    let payload = postcard::to_stdvec(message).map_err(io::Error::other)?;
    if payload.len() > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    write_frame(out, MESSAGE, &payload)
}

/// Writes data in pieces.
pub fn write_data(out: &mut impl Write, data: &[u8]) -> io::Result<()> {
    data.chunks(MAX_DATA)
        .try_for_each(|piece| write_frame(out, DATA, piece))
}

/// Writes output of the command in pieces.
pub fn write_output(out: &mut impl Write, stream: Stream, data: &[u8]) -> io::Result<()> {
    let kind = match stream {
        Stream::Stdout => STDOUT,
        Stream::Stderr => STDERR,
    };
    data.chunks(MAX_DATA)
        .try_for_each(|piece| write_frame(out, kind, piece))
}

fn write_frame(out: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let [a, b, c, d] = length.to_le_bytes();
    // One write, so that the other side wakes up once.
    let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
    frame.extend_from_slice(&[a, b, c, d, kind]);
    frame.extend_from_slice(payload);
    out.write_all(&frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_found_in_pieces_of_any_size(data in prop::collection::vec(any::<u8>(), 0..300), cut in 1_usize..40) {
            let mut stream = Vec::new();
            write_data(&mut stream, &data).unwrap();
            write_message(&mut stream, &"word").unwrap();
            write_output(&mut stream, Stream::Stderr, &data).unwrap();
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for piece in stream.chunks(cut) {
                frames.push(piece);
                while let Some(frame) = frames.next_frame().unwrap() {
                    found.push(frame);
                }
            }
            let mut expected = Vec::new();
            if !data.is_empty() {
                expected.push(Frame::Data(data.clone()));
            }
            expected.push(Frame::Message(postcard::to_stdvec(&"word").unwrap()));
            if !data.is_empty() {
                expected.push(Frame::Output(Stream::Stderr, data));
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn garbage_never_panics_and_never_allocates_much(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = Frames::default();
            frames.push(&data);
            while let Ok(Some(_)) = frames.next_frame() {}
            prop_assert!(frames.buffer.len() <= 300);
        }
    }

    #[test]
    fn a_length_over_the_limit_is_an_error() {
        let mut frames = Frames::default();
        frames.push(&[0xff, 0xff, 0xff, 0xff, DATA]);
        assert!(matches!(frames.next_frame(), Err(FrameError::Length(_))));
        let mut frames = Frames::default();
        frames.push(&[1, 0, 0, 0, 9]);
        assert!(matches!(frames.next_frame(), Err(FrameError::Kind(9))));
    }
}
