//! Frames on a byte stream: length, kind, payload.
//!
//! File contents and output are raw bytes; everything else is an encoded message. A length above the limit is an error,
//! so that a peer cannot cause large allocations.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use skillbox_model::Stream;

/// The maximum payload of a data or output frame.
pub const MAX_DATA_BYTES: usize = 64 << 10;
/// The maximum payload of a message. The largest message is a job with its command line and environment.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
const HEADER_BYTES: usize = 5;

const MESSAGE_KIND: u8 = 0;
const DATA_KIND: u8 = 1;
const STDOUT_KIND: u8 = 2;
const STDERR_KIND: u8 = 3;

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// An encoded message.
    Message(Vec<u8>),
    /// A chunk of a file or of standard input.
    Data(Vec<u8>),
    /// A chunk of the output of the command.
    Output(Stream, Vec<u8>),
}

/// An invalid frame from the other side.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The kind of the frame is unknown.
    #[error("the frame has the unknown kind {0}")]
    UnknownKind(u8),
    /// The frame is longer than the limit.
    #[error("the frame is too long: {0} bytes")]
    TooLong(usize),
    /// The message cannot be decoded.
    #[error("the message cannot be decoded")]
    InvalidMessage(#[from] postcard::Error),
}

/// Splits received bytes into frames. If all complete frames are taken after each push, the buffer contains at most one
/// incomplete frame.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    consumed: usize,
}

impl FrameDecoder {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next complete frame; none until more bytes are pushed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, kind] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let limit = match kind {
            MESSAGE_KIND => MAX_MESSAGE_BYTES,
            DATA_KIND | STDOUT_KIND | STDERR_KIND => MAX_DATA_BYTES,
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        if length > limit {
            return Err(FrameError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.consumed += HEADER_BYTES + length;
        Ok(Some(match kind {
            MESSAGE_KIND => Frame::Message(payload),
            DATA_KIND => Frame::Data(payload),
            STDOUT_KIND => Frame::Output(Stream::Stdout, payload),
            _ => Frame::Output(Stream::Stderr, payload),
        }))
    }

    /// Decodes the payload of a [`Frame::Message`].
    pub fn decode_message<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
        Ok(postcard::from_bytes(bytes)?)
    }
}

/// Writes one message.
pub fn write_message<T: Serialize>(out: &mut impl Write, message: &T) -> io::Result<()> {
    let payload = postcard::to_stdvec(message).map_err(io::Error::other)?;
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    write_frame(out, MESSAGE_KIND, &payload)
}

/// Writes data as one or more frames.
pub fn write_data(out: &mut impl Write, data: &[u8]) -> io::Result<()> {
    data.chunks(MAX_DATA_BYTES)
        .try_for_each(|chunk| write_frame(out, DATA_KIND, chunk))
}

/// Writes output of the command as one or more frames.
pub fn write_output(out: &mut impl Write, stream: Stream, data: &[u8]) -> io::Result<()> {
    let kind = match stream {
        Stream::Stdout => STDOUT_KIND,
        Stream::Stderr => STDERR_KIND,
    };
    data.chunks(MAX_DATA_BYTES)
        .try_for_each(|chunk| write_frame(out, kind, chunk))
}

fn write_frame(out: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let [a, b, c, d] = length.to_le_bytes();
    // A single write, so that the other side wakes up once.
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
        fn frames_are_decoded_from_any_chunks(data in prop::collection::vec(any::<u8>(), 0..300), cut in 1_usize..40) {
            let mut stream = Vec::new();
            write_data(&mut stream, &data).unwrap();
            write_message(&mut stream, &"word").unwrap();
            write_output(&mut stream, Stream::Stderr, &data).unwrap();
            let mut frames = FrameDecoder::default();
            let mut found = Vec::new();
            for chunk in stream.chunks(cut) {
                frames.push(chunk);
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
            let mut frames = FrameDecoder::default();
            frames.push(&data);
            while let Ok(Some(_)) = frames.next_frame() {}
            prop_assert!(frames.buffer.len() <= 300);
        }
    }

    #[test]
    fn a_length_over_the_limit_is_an_error() {
        let mut frames = FrameDecoder::default();
        frames.push(&[0xff, 0xff, 0xff, 0xff, DATA_KIND]);
        assert!(matches!(frames.next_frame(), Err(FrameError::TooLong(_))));
        let mut frames = FrameDecoder::default();
        frames.push(&[1, 0, 0, 0, 9]);
        assert!(matches!(frames.next_frame(), Err(FrameError::UnknownKind(9))));
    }
}
