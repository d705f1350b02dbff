//! The encoding of messages: postcard.

use std::io;

use serde::{Deserialize, Serialize};

/// Encodes one message.
pub(crate) fn encode<T: Serialize + ?Sized>(message: &T) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(message).map_err(io::Error::other)
}

/// Decodes one message.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
