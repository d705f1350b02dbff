//! Content on its way from a bucket: asked for piece by piece, so that no more than a few pieces are in memory.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::GetResult;

use super::connection::{About, Connection};

/// Pieces come as small as the network made them; so many bytes of them are worth a hop between threads.
const WORTH_A_HOP: usize = 256 << 10;

/// What is left of a download.
pub(crate) struct Download {
    connection: Arc<Connection>,
    key: String,
    /// None after its end, or after an error: what follows one is not to be trusted.
    stream: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    ready: Bytes,
}

impl Download {
    pub(super) fn new(connection: Arc<Connection>, key: String, answer: GetResult) -> Self {
        Self {
            connection,
            key,
            stream: Some(answer.into_stream()),
            ready: Bytes::new(),
        }
    }

    fn fetch(&mut self) -> io::Result<()> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(());
        };
        let more = self.connection.ask("read", &self.key, About::One, |_| async move {
            let mut gathered = BytesMut::new();
            while gathered.len() < WORTH_A_HOP {
                match stream.next().await {
                    Some(piece) => gathered.extend_from_slice(&piece?),
                    None => return Ok((gathered.freeze(), None)),
                }
            }
            Ok((gathered.freeze(), Some(stream)))
        });
        (self.ready, self.stream) = more.map_err(io::Error::other)?;
        Ok(())
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() {
            self.fetch()?;
        }
        let count = self.ready.len().min(buffer.len());
        self.ready.copy_to_slice(&mut buffer[..count]);
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
