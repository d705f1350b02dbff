//! Downloads content in chunks, of which only one is in memory.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::GetResult;

use super::connection::{Connection, RequestSize};

/// The network delivers small pieces. They are combined to chunks of at least this size, because passing each piece to
/// the other thread would be slow.
const MIN_CHUNK_BYTES: usize = 256 << 10;

/// A download in progress.
pub(crate) struct Download {
    connection: Arc<Connection>,
    key: String,
    /// None after the end or after an error.
    stream: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    buffered: Bytes,
}

impl Download {
    pub(crate) fn new(connection: Arc<Connection>, key: String, answer: GetResult) -> Self {
        Self {
            connection,
            key,
            stream: Some(answer.into_stream()),
            buffered: Bytes::new(),
        }
    }

    fn fetch_chunk(&mut self) -> io::Result<()> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(());
        };
        let more = self
            .connection
            .send_request("read", &self.key, RequestSize::OneObject, |_| async move {
                let mut chunk = BytesMut::new();
                while chunk.len() < MIN_CHUNK_BYTES {
                    match stream.next().await {
                        Some(piece) => chunk.extend_from_slice(&piece?),
                        None => return Ok((chunk.freeze(), None)),
                    }
                }
                Ok((chunk.freeze(), Some(stream)))
            });
        (self.buffered, self.stream) = more.map_err(io::Error::other)?;
        Ok(())
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.buffered.is_empty() {
            self.fetch_chunk()?;
        }
        let count = self.buffered.len().min(buffer.len());
        self.buffered.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
