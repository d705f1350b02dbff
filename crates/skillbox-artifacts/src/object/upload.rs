//! Content on its way into a bucket: in one request where it is small, in parts where it is not.
//!
//! The key of a blob is its digest, so everything has been read once, and lies on this host, before the first byte is
//! sent: content whose reader fails midway never leaves it.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use skillbox_model::Digest;
use tempfile::SpooledTempFile;

use super::bridge::Pending;
use super::connection::{About, Connection, or_none};
use crate::blobs::{Blobs, copy_hashed};
use crate::error::io_error;
use crate::{ArtifactName, StoreError};

/// Small enough to be kept in memory, and more than every provider asks of a part.
const PART: u64 = 8 << 20;
/// So many parts are on their way at once.
const PARTS_AT_ONCE: usize = 3;
/// Providers count to 10,000; this leaves room.
const MOST_PARTS: u64 = 9_000;

/// Content that was read to its end.
pub(super) struct Whole {
    content: SpooledTempFile,
    path: PathBuf,
    pub(super) sha256: Digest,
    pub(super) size: u64,
}

impl Whole {
    /// Reads everything: into memory, or into a nameless file where it is large.
    pub(super) fn read(scratch: &Blobs, name: &ArtifactName, content: &mut dyn Read) -> Result<Self, StoreError> {
        let path = scratch.waiting()?;
        let mut spool = tempfile::spooled_tempfile_in(PART as usize, &path);
        let (sha256, size) = copy_hashed(name, content, &mut spool, &path)?;
        Ok(Self {
            content: spool,
            path,
            sha256,
            size,
        })
    }

    /// Sends it, unless the same is there already.
    pub(super) fn send(mut self, connection: &Arc<Connection>, key: &Path) -> Result<(), StoreError> {
        let asked = key.clone();
        let there = connection.ask("look for", key, About::One, |client| async move {
            or_none(client.head(&asked).await)
        })?;
        if there.is_some_and(|meta| meta.size == self.size) {
            return Ok(());
        }
        self.content
            .seek(SeekFrom::Start(0))
            .map_err(io_error("read", &self.path))?;
        if self.size <= PART {
            let payload = self.next_part(PART)?;
            let key_sent = key.clone();
            connection.ask("write", key, About::One, |client| async move {
                client.put(&key_sent, payload).await.map(drop)
            })
        } else {
            self.send_parts(connection, key)
        }
    }

    fn send_parts(&mut self, connection: &Arc<Connection>, key: &Path) -> Result<(), StoreError> {
        let part_size = PART.max(self.size.div_ceil(MOST_PARTS));
        let mut parts = Parts::begin(connection, key)?;
        for _ in 0..self.size.div_ceil(part_size) {
            let sent = self.next_part(part_size).and_then(|part| parts.send(part));
            if let Err(error) = sent {
                return Err(parts.abort(error));
            }
        }
        parts.complete()
    }

    fn next_part(&mut self, size: u64) -> Result<PutPayload, StoreError> {
        let mut part = Vec::new();
        let read = (&mut self.content).take(size).read_to_end(&mut part);
        read.map_err(io_error("read", &self.path))?;
        Ok(part.into())
    }
}

/// An upload in parts. Nothing of it is visible before [`Self::complete`]; dropped before that, it is taken back.
struct Parts<'a> {
    connection: &'a Connection,
    key: &'a Path,
    upload: Option<Box<dyn MultipartUpload>>,
    on_their_way: VecDeque<Pending<object_store::Result<()>>>,
}

impl<'a> Parts<'a> {
    fn begin(connection: &'a Connection, key: &'a Path) -> Result<Self, StoreError> {
        let begun = key.clone();
        let upload = connection.ask("begin to write", key, About::One, |client| async move {
            client.put_multipart(&begun).await
        })?;
        Ok(Self {
            connection,
            key,
            upload: Some(upload),
            on_their_way: VecDeque::new(),
        })
    }

    fn send(&mut self, part: PutPayload) -> Result<(), StoreError> {
        if self.on_their_way.len() >= PARTS_AT_ONCE {
            self.wait_for_one()?;
        }
        if let Some(upload) = &mut self.upload {
            let sending = self.connection.begin(About::One, upload.put_part(part));
            self.on_their_way.push_back(sending);
        }
        Ok(())
    }

    fn wait_for_one(&mut self) -> Result<(), StoreError> {
        match self.on_their_way.pop_front() {
            Some(oldest) => self.connection.end("write a part of", self.key, About::One, oldest),
            None => Ok(()),
        }
    }

    fn complete(mut self) -> Result<(), StoreError> {
        while !self.on_their_way.is_empty() {
            if let Err(error) = self.wait_for_one() {
                return Err(self.abort(error));
            }
        }
        let Some(mut upload) = self.upload.take() else {
            return Ok(());
        };
        // It comes back with the answer, so that it can be taken back where that is none, or a failure.
        let patience = self.connection.patience(About::One);
        let finishing = async move {
            let answer = tokio::time::timeout(patience, upload.complete()).await;
            Ok((answer, upload))
        };
        let finished = self
            .connection
            .ask("finish writing", self.key, About::Many, |_| finishing);
        let (answer, upload) = finished?;
        let error = match answer {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => self.connection.failed("finish writing", self.key, error),
            Err(_) => StoreError::TooSlow {
                action: "finish writing",
                place: self.connection.place(self.key),
                patience,
            },
        };
        self.upload = Some(upload);
        Err(self.abort(error))
    }

    /// Takes back what was sent, and gives the reason with what came of that.
    fn abort(mut self, cause: StoreError) -> StoreError {
        match self.take_back() {
            Ok(()) => cause,
            Err(source) => StoreError::PartsLeft {
                cause: Box::new(cause),
                place: self.connection.place(self.key),
                source: Box::new(source),
            },
        }
    }

    fn take_back(&mut self) -> Result<(), StoreError> {
        // Parts that arrive after the abort would stay.
        self.on_their_way.clear();
        let Some(mut upload) = self.upload.take() else {
            return Ok(());
        };
        self.connection.ask(
            "take back",
            self.key,
            About::One,
            |_| async move { upload.abort().await },
        )
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        // Only a panic leads here with parts that are left; there is nobody to tell.
        let _told_to_nobody = self.take_back();
    }
}
