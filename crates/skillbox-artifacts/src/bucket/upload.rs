//! Uploads content to a bucket: in one request if it is small, otherwise in parts.
//!
//! The key of a blob is its digest. The content is therefore read completely before the first byte is sent, and nothing
//! is sent if reading fails.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use skillbox_model::Digest;
use tempfile::SpooledTempFile;

use super::connection::{Connection, RequestSize, none_if_not_found};
use super::event_loop::PendingRequest;
use crate::blobs::{BlobDirectory, copy_and_hash};
use crate::error::io_error;
use crate::{ArtifactName, StoreError};

/// The size of a part: small enough for memory, and above the minimum of every provider.
const PART_BYTES: u64 = 8 << 20;
/// The number of parts that are uploaded concurrently.
const MAX_CONCURRENT_PARTS: usize = 3;
/// Providers allow 10,000 parts; this leaves a margin.
const MAX_PARTS: u64 = 9_000;

/// Content that was read completely, in memory or in a temporary file.
pub(crate) struct SpooledContent {
    content: SpooledTempFile,
    /// The directory of the temporary file, for errors.
    directory: PathBuf,
    pub(crate) sha256: Digest,
    pub(crate) size: u64,
}

impl SpooledContent {
    /// Reads the content into memory, or into an unnamed temporary file if it is large.
    pub(crate) fn read(
        scratch: &BlobDirectory,
        name: &ArtifactName,
        content: &mut dyn Read,
    ) -> Result<Self, StoreError> {
        let directory = scratch.temp_directory()?;
        let mut spool = tempfile::spooled_tempfile_in(PART_BYTES as usize, &directory);
        let (sha256, size) = copy_and_hash(name, content, &mut spool, &directory)?;
        Ok(Self {
            content: spool,
            directory,
            sha256,
            size,
        })
    }

    /// Uploads the content, unless the same blob exists.
    pub(crate) fn upload(mut self, connection: &Arc<Connection>, key: &Path) -> Result<(), StoreError> {
        let owned_key = key.clone();
        let existing = connection.send_request("look for", key, RequestSize::OneObject, |client| async move {
            none_if_not_found(client.head(&owned_key).await)
        })?;
        if existing.is_some_and(|meta| meta.size == self.size) {
            return Ok(());
        }
        self.content
            .seek(SeekFrom::Start(0))
            .map_err(io_error("read", &self.directory))?;
        if self.size <= PART_BYTES {
            let payload = self.next_part(PART_BYTES)?;
            let owned_key = key.clone();
            connection.send_request("write", key, RequestSize::OneObject, |client| async move {
                client.put(&owned_key, payload).await.map(drop)
            })
        } else {
            self.upload_parts(connection, key)
        }
    }

    fn upload_parts(&mut self, connection: &Arc<Connection>, key: &Path) -> Result<(), StoreError> {
        let part_size = PART_BYTES.max(self.size.div_ceil(MAX_PARTS));
        let mut parts = PartUpload::begin(connection, key)?;
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
        read.map_err(io_error("read", &self.directory))?;
        Ok(part.into())
    }
}

/// A multipart upload. Nothing is visible before [`Self::complete`]. If it is dropped earlier, the upload is aborted.
struct PartUpload<'a> {
    connection: &'a Connection,
    key: &'a Path,
    upload: Option<Box<dyn MultipartUpload>>,
    in_flight: VecDeque<PendingRequest<object_store::Result<()>>>,
}

impl<'a> PartUpload<'a> {
    fn begin(connection: &'a Connection, key: &'a Path) -> Result<Self, StoreError> {
        let owned_key = key.clone();
        let upload = connection.send_request(
            "start the upload of",
            key,
            RequestSize::OneObject,
            |client| async move { client.put_multipart(&owned_key).await },
        )?;
        Ok(Self {
            connection,
            key,
            upload: Some(upload),
            in_flight: VecDeque::new(),
        })
    }

    fn send(&mut self, part: PutPayload) -> Result<(), StoreError> {
        if self.in_flight.len() >= MAX_CONCURRENT_PARTS {
            self.wait_for_oldest_part()?;
        }
        if let Some(upload) = &mut self.upload {
            let sending = self
                .connection
                .start_request(RequestSize::OneObject, upload.put_part(part));
            self.in_flight.push_back(sending);
        }
        Ok(())
    }

    fn wait_for_oldest_part(&mut self) -> Result<(), StoreError> {
        match self.in_flight.pop_front() {
            Some(oldest) => {
                self.connection
                    .finish_request("upload a part of", self.key, RequestSize::OneObject, oldest)
            }
            None => Ok(()),
        }
    }

    fn complete(mut self) -> Result<(), StoreError> {
        while !self.in_flight.is_empty() {
            if let Err(error) = self.wait_for_oldest_part() {
                return Err(self.abort(error));
            }
        }
        let Some(mut upload) = self.upload.take() else {
            return Ok(());
        };
        // The future returns the upload, so that it can be aborted after a timeout or an error.
        let timeout = self.connection.request_timeout(RequestSize::OneObject);
        let finishing = async move {
            let answer = tokio::time::timeout(timeout, upload.complete()).await;
            Ok((answer, upload))
        };
        let finished = self
            .connection
            .send_request("finish the upload of", self.key, RequestSize::ManyObjects, |_| {
                finishing
            });
        let (answer, upload) = finished?;
        let error = match answer {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => self.connection.remote_error("finish the upload of", self.key, error),
            Err(_) => StoreError::Timeout {
                action: "finish the upload of",
                location: self.connection.object_url(self.key),
                timeout,
            },
        };
        self.upload = Some(upload);
        Err(self.abort(error))
    }

    /// Aborts the upload. Returns the cause, with the error of the abort if that failed too.
    fn abort(mut self, cause: StoreError) -> StoreError {
        match self.abort_upload() {
            Ok(()) => cause,
            Err(source) => StoreError::PartsNotRemoved {
                cause: Box::new(cause),
                location: self.connection.object_url(self.key),
                source: Box::new(source),
            },
        }
    }

    fn abort_upload(&mut self) -> Result<(), StoreError> {
        // Cancels the parts in flight. Parts that arrive after the abort would remain in the bucket.
        self.in_flight.clear();
        let Some(mut upload) = self.upload.take() else {
            return Ok(());
        };
        self.connection.send_request(
            "abort the upload of",
            self.key,
            RequestSize::OneObject,
            |_| async move { upload.abort().await },
        )
    }
}

impl Drop for PartUpload<'_> {
    fn drop(&mut self) {
        // Only a panic leaves parts at this point, and there is no caller to report an error to.
        let _unreported = self.abort_upload();
    }
}
