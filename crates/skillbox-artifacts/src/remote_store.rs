//! The store in a bucket.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload};

use crate::blobs::BlobDirectory;
use crate::bucket::connection::{Connection, RequestSize};
use crate::bucket::keys::{self, Keys};
use crate::bucket::{BucketOptions, Download, SpooledContent, records};
use crate::content::Content;
use crate::error::io_error;
use crate::record::now_unix_ms;
use crate::{
    Artifact, ArtifactMetadata, ArtifactName, ArtifactRef, Bucket, CheckedContent, ObjectKey, RangeContent, Scope,
    StoreError,
};

/// A store in a bucket, which other hosts may use as well.
#[derive(Clone)]
pub(crate) struct RemoteStore {
    keys: Keys,
    shared: Arc<Shared>,
}

/// The state that clones and tenants share.
struct Shared {
    bucket: Bucket,
    options: BucketOptions,
    scratch: BlobDirectory,
    /// Created on first use, so that runs that store nothing do not pay for it.
    connection: Mutex<Option<Arc<Connection>>>,
}

impl RemoteStore {
    pub(crate) fn new(bucket: Bucket, options: BucketOptions) -> Self {
        Self {
            keys: Keys::new(&bucket.prefix),
            shared: Arc::new(Shared {
                scratch: BlobDirectory::new(&options.scratch),
                bucket,
                options,
                connection: Mutex::new(None),
            }),
        }
    }

    pub(crate) fn for_tenant(&self, tenant: &str) -> Self {
        Self {
            keys: self.keys.for_tenant(tenant),
            shared: self.shared.clone(),
        }
    }

    pub(crate) fn put(
        &self,
        scope: &Scope,
        name: &ArtifactName,
        content: &mut dyn Read,
        metadata: ArtifactMetadata,
    ) -> Result<Artifact, StoreError> {
        let versions = self.keys.versions_prefix(scope, name)?;
        let connection = self.connection()?;
        let content = SpooledContent::read(&self.shared.scratch, name, content)?;
        let (sha256, size_bytes) = (content.sha256, content.size);
        // The blob is stored first, because a record must never refer to missing content.
        content.upload(&connection, &self.keys.blob_key(&sha256))?;
        let next = records::list_versions(&connection, &versions)?
            .last()
            .map_or(0, |entry| entry.version.saturating_add(1));
        let artifact = Artifact {
            name: name.clone(),
            version: next,
            size_bytes,
            sha256,
            mime_type: metadata.mime_type,
            run_id: metadata.run_id,
            created_unix_ms: now_unix_ms(),
        };
        records::claim_version(&connection, &versions, artifact)
    }

    pub(crate) fn resolve(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Artifact, StoreError> {
        let missing = || StoreError::Missing(reference.clone());
        let versions = self.keys.versions_prefix(scope, &reference.name)?;
        let connection = self.connection()?;
        let version = match reference.version {
            Some(version) => version,
            None => {
                let entries = records::list_versions(&connection, &versions)?;
                let newest = entries.iter().rfind(|entry| entry.is_stored);
                newest.ok_or_else(missing)?.version
            }
        };
        let found = records::read_record(&connection, &keys::record_key(&versions, version))?;
        found.ok_or_else(missing)
    }

    pub(crate) fn open(&self, artifact: &Artifact) -> Result<CheckedContent, StoreError> {
        let content = self.download(artifact, None)?;
        Ok(CheckedContent::new(Content::Download(content), artifact.sha256))
    }

    pub(crate) fn open_range(&self, artifact: &Artifact, range: &Range<u64>) -> Result<RangeContent, StoreError> {
        let length = range.end - range.start;
        let content = match length {
            0 => Content::Empty,
            _ => Content::Download(self.download(artifact, Some(GetRange::Bounded(range.clone())))?),
        };
        Ok(RangeContent::new(content, length))
    }

    /// Downloads the content to a file of this host, which can be mounted into a workspace. The file is kept for later
    /// calls.
    pub(crate) fn open_checked_file(&self, artifact: &Artifact) -> Result<File, StoreError> {
        let scratch = &self.shared.scratch;
        let path = scratch.blob_path(&artifact.sha256);
        if let Ok(file) = scratch.open(&artifact.sha256) {
            let mut cached = CheckedContent::new(Content::File(file), artifact.sha256);
            match io::copy(&mut cached, &mut io::sink()) {
                Ok(_) => return scratch.open(&artifact.sha256),
                // A damaged copy is downloaded again.
                Err(_) => std::fs::remove_file(&path).map_err(io_error("remove", &path))?,
            }
        }
        scratch.write(&artifact.name, &mut self.open(artifact)?)?;
        scratch.open(&artifact.sha256)
    }

    pub(crate) fn versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<Artifact>, StoreError> {
        let versions = self.keys.versions_prefix(scope, name)?;
        let connection = self.connection()?;
        let entries = records::list_versions(&connection, &versions)?;
        let stored = entries.iter().filter(|entry| entry.is_stored);
        let keys = stored.map(|entry| keys::record_key(&versions, entry.version)).collect();
        records::read_records(&connection, self.keys.prefix(), keys)
    }

    pub(crate) fn list(&self, scope: &Scope) -> Result<Vec<Artifact>, StoreError> {
        let connection = self.connection()?;
        let prefix = self.keys.scope_prefix(scope);
        let (owned_prefix, own_keys, own_scope) = (prefix.clone(), self.keys.clone(), scope.clone());
        let newest = connection.send_request("list", &prefix, RequestSize::ManyObjects, |client| async move {
            let mut newest = BTreeMap::new();
            let mut objects = client.list(Some(&owned_prefix));
            while let Some(object) = objects.try_next().await? {
                let Some((name, version)) = own_keys.parse_record(&own_scope, &object.location) else {
                    continue;
                };
                if object.size > 0 {
                    let newest_version = newest.entry(name).or_insert(version);
                    *newest_version = version.max(*newest_version);
                }
            }
            Ok(newest)
        })?;
        let mut keys = Vec::new();
        for (name, version) in newest {
            keys.push(keys::record_key(&self.keys.versions_prefix(scope, &name)?, version));
        }
        records::read_records(&connection, self.keys.prefix(), keys)
    }

    pub(crate) fn remove(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Vec<Artifact>, StoreError> {
        let removed = match reference.version {
            Some(_) => vec![self.resolve(scope, reference)?],
            None => self.versions(scope, &reference.name)?,
        };
        if removed.is_empty() {
            return Err(StoreError::Missing(reference.clone()));
        }
        let versions = self.keys.versions_prefix(scope, &reference.name)?;
        let connection = self.connection()?;
        for artifact in &removed {
            let key = keys::record_key(&versions, artifact.version);
            // An empty record marks the version as removed in one atomic step.
            let owned_key = key.clone();
            connection.send_request("remove", &key, RequestSize::OneObject, |client| async move {
                client.put(&owned_key, PutPayload::new()).await.map(drop)
            })?;
        }
        Ok(removed)
    }

    pub(crate) fn remove_scope(&self, scope: &Scope) -> Result<(), StoreError> {
        let prefix = self.keys.scope_prefix(scope);
        let connection = self.connection()?;
        let owned_prefix = prefix.clone();
        connection.send_request("remove", &prefix, RequestSize::ManyObjects, |client| async move {
            let keys = client
                .list(Some(&owned_prefix))
                .map_ok(|object| object.location)
                .boxed();
            client.delete_stream(keys).try_for_each(|_| async { Ok(()) }).await
        })
    }

    fn download(&self, artifact: &Artifact, range: Option<GetRange>) -> Result<Download, StoreError> {
        let key = self.keys.blob_key(&artifact.sha256);
        let connection = self.connection()?;
        let owned_key = key.clone();
        let answer = connection.send_request("read", &key, RequestSize::OneObject, |client| async move {
            let options = GetOptions {
                range,
                ..GetOptions::default()
            };
            client.get_opts(&owned_key, options).await
        })?;
        Ok(Download::new(connection, key.to_string(), answer))
    }

    /// The key in the bucket of an object that a caller named.
    pub(crate) fn object_key(&self, key: &ObjectKey) -> Path {
        self.keys.key(key.as_str())
    }

    pub(crate) fn scratch(&self) -> &BlobDirectory {
        &self.shared.scratch
    }

    pub(crate) fn connection(&self) -> Result<Arc<Connection>, StoreError> {
        let mut connection = self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*connection {
            return Ok(open.clone());
        }
        let open = Arc::new(Connection::open(&self.shared.bucket, &self.shared.options)?);
        *connection = Some(open.clone());
        Ok(open)
    }
}

/// The URL of the store.
impl fmt::Display for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shared.bucket.root_url(), self.keys.prefix())
    }
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteStore").field(&self.to_string()).finish()
    }
}
