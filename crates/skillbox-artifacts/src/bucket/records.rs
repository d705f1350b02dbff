//! Creates and reads the records of versions in a bucket.
//!
//! An empty record marks a removed version, whose number stays used.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use super::connection::{Connection, RequestSize, none_if_not_found};
use super::keys;
use crate::{Artifact, StoreError, layout};

/// Records are small. A larger object is not a record.
const MAX_RECORD_BYTES: u64 = 64 << 10;
/// The number of records that are read concurrently.
const MAX_CONCURRENT_READS: usize = 8;
/// How long a writer tries to claim a version.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(120);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A record in a bucket. It contains a unique id of its writer, by which the writer can recognise it.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    artifact: Artifact,
    #[serde(rename = "writer")]
    writer_id: String,
}

/// A used version number.
pub(crate) struct VersionEntry {
    pub(crate) version: u64,
    /// False for a removed version.
    pub(crate) is_stored: bool,
}

/// The state of a record.
enum RecordState {
    Absent,
    /// The version was removed.
    Removed,
    Present(Bytes),
}

/// Creates the record. If another writer claimed the version first, tries the next one.
pub(crate) fn claim_version(
    connection: &Connection,
    versions: &Path,
    artifact: Artifact,
) -> Result<Artifact, StoreError> {
    let writer_id = uuid::Uuid::now_v7().to_string();
    let mut record = Record { artifact, writer_id };
    let deadline = Instant::now() + CLAIM_TIMEOUT;
    loop {
        let key = keys::record_key(versions, record.artifact.version);
        if create_record(connection, &key, &record)? {
            return Ok(record.artifact);
        }
        match fetch_record(connection, &key)? {
            // An earlier attempt succeeded, but its response was lost.
            RecordState::Present(text) if parse_record(connection, &key, &text)?.writer_id == record.writer_id => {
                return Ok(record.artifact);
            }
            RecordState::Present(_) | RecordState::Removed => {
                record.artifact.version = record.artifact.version.saturating_add(1)
            }
            // When writers collide, all of them can fail, so the same version is tried again.
            RecordState::Absent => std::thread::sleep(RETRY_INTERVAL),
        }
        if Instant::now() > deadline {
            return Err(StoreError::Timeout {
                action: "claim a version of",
                location: connection.object_url(versions),
                timeout: CLAIM_TIMEOUT,
            });
        }
    }
}

/// The used version numbers, in ascending order.
pub(crate) fn list_versions(connection: &Connection, versions: &Path) -> Result<Vec<VersionEntry>, StoreError> {
    let owned_prefix = versions.clone();
    let found = connection.send_request("list", versions, RequestSize::ManyObjects, |client| async move {
        client.list_with_delimiter(Some(&owned_prefix)).await
    })?;
    let entries = found.objects.iter().filter_map(|object| {
        let (version, layout::RECORD_EXTENSION) = layout::parse_version_file(object.location.filename()?)? else {
            return None;
        };
        Some(VersionEntry {
            version,
            is_stored: object.size > 0,
        })
    });
    let mut entries: Vec<VersionEntry> = entries.collect();
    entries.sort_unstable_by_key(|entry| entry.version);
    Ok(entries)
}

/// Reads one record; none if it does not exist or was removed.
pub(crate) fn read_record(connection: &Connection, key: &Path) -> Result<Option<Artifact>, StoreError> {
    match fetch_record(connection, key)? {
        RecordState::Present(text) => Ok(Some(parse_record(connection, key, &text)?.artifact)),
        RecordState::Removed | RecordState::Absent => Ok(None),
    }
}

/// Reads several records. Those that were removed after the listing are skipped.
pub(crate) fn read_records(
    connection: &Connection,
    prefix: &str,
    keys: Vec<Path>,
) -> Result<Vec<Artifact>, StoreError> {
    let records = connection.send_request(
        "read records of",
        prefix,
        RequestSize::ManyObjects,
        |client| async move {
            let requests = keys.into_iter().map(|key| {
                let client = client.clone();
                async move { download_record(&*client, &key).await.map(|found| (key, found)) }
            });
            let records = futures_util::stream::iter(requests).buffered(MAX_CONCURRENT_READS);
            records.try_collect::<Vec<_>>().await
        },
    )?;
    let mut artifacts = Vec::new();
    for (key, found) in records {
        if let RecordState::Present(text) = found {
            artifacts.push(parse_record(connection, &key, &text)?.artifact);
        }
    }
    Ok(artifacts)
}

/// Creates a record. Returns false if it already exists.
fn create_record(connection: &Connection, key: &Path, record: &Record) -> Result<bool, StoreError> {
    let text = serde_json::to_vec_pretty(record).map_err(|source| StoreError::Record {
        location: connection.object_url(key),
        source,
    })?;
    let owned_key = key.clone();
    connection.send_request("write", key, RequestSize::OneObject, |client| async move {
        match client.put_opts(&owned_key, text.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    })
}

fn fetch_record(connection: &Connection, key: &Path) -> Result<RecordState, StoreError> {
    let owned_key = key.clone();
    connection.send_request("read", key, RequestSize::OneObject, |client| async move {
        download_record(&*client, &owned_key).await
    })
}

async fn download_record(client: &dyn ObjectStore, key: &Path) -> object_store::Result<RecordState> {
    let Some(found) = none_if_not_found(client.get(key).await)? else {
        return Ok(RecordState::Absent);
    };
    match found.meta.size {
        0 => Ok(RecordState::Removed),
        1..=MAX_RECORD_BYTES => Ok(RecordState::Present(found.bytes().await?)),
        size => Err(Error::Generic {
            store: "record",
            source: format!("the object has {size} bytes and is not a record").into(),
        }),
    }
}

fn parse_record(connection: &Connection, key: &Path, text: &[u8]) -> Result<Record, StoreError> {
    serde_json::from_slice(text).map_err(|source| StoreError::Record {
        location: connection.object_url(key),
        source,
    })
}
