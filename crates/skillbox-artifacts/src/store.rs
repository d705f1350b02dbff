//! The public interface of a store, independent of its location.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use skillbox_model::Digest;

use crate::bucket::BucketOptions;
use crate::local_store::LocalStore;
use crate::remote_store::RemoteStore;
use crate::{
    Artifact, ArtifactMetadata, ArtifactName, ArtifactRef, Bucket, CheckedContent, FreedContent, Location, ObjectKey,
    RangeContent, Scope, StoreError,
};

/// A store of artifacts. It is cheap to clone. Threads, processes and, in a bucket, hosts can share it.
#[derive(Clone, Debug)]
pub struct Store(Backend);

/// The kinds of stores.
#[derive(Clone, Debug)]
enum Backend {
    Local(LocalStore),
    Remote(RemoteStore),
}

impl Store {
    /// Creates a store below a directory. The first file creates the directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(Backend::Local(LocalStore::new(root)))
    }

    /// Creates a store in a bucket. The first request starts its thread and connects.
    pub fn in_bucket(bucket: Bucket, options: BucketOptions) -> Self {
        Self(Backend::Remote(RemoteStore::new(bucket, options)))
    }

    /// Creates a store at a location. `options` apply to buckets.
    pub fn at(location: Location, options: BucketOptions) -> Self {
        match location {
            Location::Directory(root) => Self::new(root),
            Location::Bucket(bucket) => Self::in_bucket(bucket, options),
        }
    }

    /// The same store, whose content may use at most this many bytes on a local disk. Each tenant has a quota of its own. A
    /// bucket has no quota: the provider of the service limits it.
    #[must_use]
    pub fn with_quota(self, max_bytes: u64) -> Self {
        Self(match self.0 {
            Backend::Local(store) => Backend::Local(store.with_quota(max_bytes)),
            Backend::Remote(store) => Backend::Remote(store),
        })
    }

    /// The bytes that the content of this store uses on a local disk; none for a bucket.
    pub fn used_bytes(&self) -> Result<Option<u64>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.blobs().used_bytes().map(Some),
            Backend::Remote(_) => Ok(None),
        }
    }

    /// The part of this store that belongs to one tenant. It does not contain the artifacts of other tenants.
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self(match &self.0 {
            Backend::Local(store) => Backend::Local(store.for_tenant(tenant)),
            Backend::Remote(store) => Backend::Remote(store.for_tenant(tenant)),
        })
    }

    /// Stores the whole `content` as the next version of `name`.
    pub fn put(
        &self,
        scope: &Scope,
        name: &ArtifactName,
        content: &mut dyn Read,
        metadata: ArtifactMetadata,
    ) -> Result<Artifact, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.put(scope, name, content, metadata),
            Backend::Remote(store) => store.put(scope, name, content, metadata),
        }
    }

    /// Resolves a reference to its record.
    pub fn resolve(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Artifact, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.resolve(scope, reference),
            Backend::Remote(store) => store.resolve(scope, reference),
        }
    }

    /// Opens the content of a version. The digest is verified while the content is read.
    pub fn open(&self, artifact: &Artifact) -> Result<CheckedContent, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.open(artifact),
            Backend::Remote(store) => store.open(artifact),
        }
    }

    /// Opens the bytes of a version from `range.start` up to but excluding `range.end`. They are *not* verified,
    /// because the digest covers the whole content. Reading fails if the store has fewer bytes.
    pub fn open_range(&self, artifact: &Artifact, range: Range<u64>) -> Result<RangeContent, StoreError> {
        if range.start > range.end || range.end > artifact.size_bytes {
            return Err(StoreError::Range {
                from: range.start,
                to: range.end,
                size: artifact.size_bytes,
            });
        }
        match &self.0 {
            Backend::Local(store) => store.open_range(artifact, &range),
            Backend::Remote(store) => store.open_range(artifact, &range),
        }
    }

    /// Opens the content of a version as a file of this host, after verifying it.
    pub fn open_checked_file(&self, artifact: &Artifact) -> Result<File, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.open_checked_file(artifact),
            Backend::Remote(store) => store.open_checked_file(artifact),
        }
    }

    /// The versions of a name, oldest first.
    pub fn versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<Artifact>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.versions(scope, name),
            Backend::Remote(store) => store.versions(scope, name),
        }
    }

    /// The newest version of every name, ordered by name.
    pub fn list(&self, scope: &Scope) -> Result<Vec<Artifact>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.list(scope),
            Backend::Remote(store) => store.list(scope),
        }
    }

    /// Removes one version, or all versions of a name. Their numbers are never reused.
    pub fn remove(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Vec<Artifact>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.remove(scope, reference),
            Backend::Remote(store) => store.remove(scope, reference),
        }
    }

    /// Removes content that no version uses. Writers wait only while there is something to remove. In a bucket nothing
    /// is removed: there are no locks, so a writer on another host may be about to use the content.
    pub fn collect_garbage(&self) -> Result<FreedContent, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.collect_garbage(),
            Backend::Remote(_) => Ok(FreedContent::default()),
        }
    }

    /// Removes a scope with all its versions. Version numbers start at 0 again. Returns whether there may be content
    /// for the garbage collector.
    pub fn remove_scope(&self, scope: &Scope) -> Result<bool, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.remove_scope(scope),
            Backend::Remote(store) => store.remove_scope(scope).map(|()| false),
        }
    }

    /// Creates an object beside the artifacts, durably. Returns false, and changes nothing, if the key is taken.
    pub fn create_object(&self, key: &ObjectKey, content: &[u8]) -> Result<bool, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.create_object(key, content),
            Backend::Remote(store) => store.create_object(key, content),
        }
    }

    /// The content of an object; none if there is none. More than `max_bytes` are an error.
    pub fn read_object(&self, key: &ObjectKey, max_bytes: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.read_object(key, max_bytes),
            Backend::Remote(store) => store.read_object(key, max_bytes),
        }
    }

    /// Whether an object exists.
    pub fn has_object(&self, key: &ObjectKey) -> Result<bool, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.has_object(key),
            Backend::Remote(store) => store.has_object(key),
        }
    }

    /// The last components of the keys directly below a prefix, in no order.
    pub fn list_objects(&self, prefix: &ObjectKey) -> Result<Vec<String>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.list_objects(prefix),
            Backend::Remote(store) => store.list_objects(prefix),
        }
    }

    /// Removes an object, if it exists.
    pub fn remove_object(&self, key: &ObjectKey) -> Result<(), StoreError> {
        match &self.0 {
            Backend::Local(store) => store.remove_object(key),
            Backend::Remote(store) => store.remove_object(key),
        }
    }

    /// Stores content under its digest below a prefix, unless it is there already. No garbage collector removes it.
    /// `name` is used only in errors.
    pub fn put_content(
        &self,
        prefix: &ObjectKey,
        name: &ArtifactName,
        content: &mut dyn Read,
    ) -> Result<(Digest, u64), StoreError> {
        match &self.0 {
            Backend::Local(store) => store.put_content(prefix, name, content),
            Backend::Remote(store) => store.put_content(prefix, name, content),
        }
    }

    /// Opens content that was stored below a prefix. The digest is verified while the content is read.
    pub fn open_content(&self, prefix: &ObjectKey, digest: &Digest) -> Result<CheckedContent, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.open_content(prefix, digest),
            Backend::Remote(store) => store.open_content(prefix, digest),
        }
    }
}

/// The location of the store.
impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Local(store) => store.root().display().fmt(f),
            Backend::Remote(store) => store.fmt(f),
        }
    }
}
