//! Records of versions in a bucket: claiming the next one, and reading those there are.
//!
//! A record that is empty is a number that was removed, and stays used.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use super::connection::{About, Connection, or_none};
use super::keys;
use crate::{Artifact, StoreError, layout};

/// Records are small; one that is not is none.
const LARGEST_RECORD: u64 = 64 << 10;
/// So many are read at once.
const READS_AT_ONCE: usize = 8;
/// How long a version may be fought for.
const CLAIM_WITHIN: Duration = Duration::from_secs(120);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// A record as a bucket has it: with the mark of its writer, who may have to recognise it.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    artifact: Artifact,
    writer: String,
}

/// A number that was given to somebody.
pub(super) struct Used {
    pub(super) version: u64,
    pub(super) is_stored: bool,
}

/// What stands under a key.
enum Found {
    Nothing,
    /// A number that was removed.
    Empty,
    Text(Bytes),
}

/// Creates the record; where another writer took the number first, tries the next one.
pub(super) fn claim(connection: &Connection, versions: &Path, artifact: Artifact) -> Result<Artifact, StoreError> {
    let writer = uuid::Uuid::now_v7().to_string();
    let mut record = Record { artifact, writer };
    let end = Instant::now() + CLAIM_WITHIN;
    loop {
        let key = keys::record(versions, record.artifact.version);
        if create(connection, &key, &record)? {
            return Ok(record.artifact);
        }
        match look(connection, &key)? {
            // An earlier try of ours came through, and only its answer was lost.
            Found::Text(text) if parse(connection, &key, &text)?.writer == record.writer => return Ok(record.artifact),
            Found::Text(_) | Found::Empty => record.artifact.version = record.artifact.version.saturating_add(1),
            // Writers that met and all lost: somebody has to try again.
            Found::Nothing => std::thread::sleep(BETWEEN_TRIES),
        }
        if Instant::now() > end {
            return Err(StoreError::TooSlow {
                action: "claim a version below",
                place: connection.place(versions),
                patience: CLAIM_WITHIN,
            });
        }
    }
}

/// The numbers that were given, lowest first.
pub(super) fn used(connection: &Connection, versions: &Path) -> Result<Vec<Used>, StoreError> {
    let listed = versions.clone();
    let found = connection.ask("list", versions, About::Many, |client| async move {
        client.list_with_delimiter(Some(&listed)).await
    })?;
    let used = found.objects.iter().filter_map(|object| {
        let (version, layout::RECORD) = layout::parse_version_file(object.location.filename()?)? else {
            return None;
        };
        Some(Used {
            version,
            is_stored: object.size > 0,
        })
    });
    let mut used: Vec<Used> = used.collect();
    used.sort_unstable_by_key(|used| used.version);
    Ok(used)
}

/// One record, or none where there is none any more.
pub(super) fn read(connection: &Connection, key: &Path) -> Result<Option<Artifact>, StoreError> {
    match look(connection, key)? {
        Found::Text(text) => Ok(Some(parse(connection, key, &text)?.artifact)),
        Found::Empty | Found::Nothing => Ok(None),
    }
}

/// Several records; one that vanished since it was listed was removed meanwhile.
pub(super) fn read_all(connection: &Connection, below: &str, keys: Vec<Path>) -> Result<Vec<Artifact>, StoreError> {
    let looks = connection.ask("read records of", below, About::Many, |client| async move {
        let looks = keys.into_iter().map(|key| {
            let client = client.clone();
            async move { look_up(&*client, &key).await.map(|found| (key, found)) }
        });
        let looks = futures_util::stream::iter(looks).buffered(READS_AT_ONCE);
        looks.try_collect::<Vec<_>>().await
    })?;
    let mut artifacts = Vec::new();
    for (key, found) in looks {
        if let Found::Text(text) = found {
            artifacts.push(parse(connection, &key, &text)?.artifact);
        }
    }
    Ok(artifacts)
}

/// Whether the record is new there.
fn create(connection: &Connection, key: &Path, record: &Record) -> Result<bool, StoreError> {
    let text = serde_json::to_vec_pretty(record).map_err(|source| StoreError::Record {
        place: connection.place(key),
        source,
    })?;
    let created = key.clone();
    connection.ask("write", key, About::One, |client| async move {
        match client.put_opts(&created, text.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    })
}

fn look(connection: &Connection, key: &Path) -> Result<Found, StoreError> {
    let asked = key.clone();
    connection.ask("read", key, About::One, |client| async move {
        look_up(&*client, &asked).await
    })
}

async fn look_up(client: &dyn ObjectStore, key: &Path) -> object_store::Result<Found> {
    let Some(found) = or_none(client.get(key).await)? else {
        return Ok(Found::Nothing);
    };
    match found.meta.size {
        0 => Ok(Found::Empty),
        1..=LARGEST_RECORD => Ok(Found::Text(found.bytes().await?)),
        size => Err(Error::Generic {
            store: "record",
            source: format!("it has {size} bytes, which no record has").into(),
        }),
    }
}

fn parse(connection: &Connection, key: &Path, text: &[u8]) -> Result<Record, StoreError> {
    serde_json::from_slice(text).map_err(|source| StoreError::Record {
        place: connection.place(key),
        source,
    })
}
