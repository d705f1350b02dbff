//! The store as everybody sees it, wherever it lies.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use crate::local::LocalStore;
use crate::object::{BucketOptions, RemoteStore};
use crate::{
    Artifact, ArtifactName, ArtifactRef, Bucket, CheckedContent, Freed, Location, Origin, RangeContent, Scope,
    StoreError,
};

/// A store of artifacts. Cheap to clone; safe to share between threads, processes and, in a bucket, hosts.
#[derive(Clone, Debug)]
pub struct Store(Backend);

/// The kinds there are; everybody else sees a [`Store`].
#[derive(Clone, Debug)]
enum Backend {
    Local(LocalStore),
    Remote(RemoteStore),
}

impl Store {
    /// A store below a directory, which is made when the first file comes.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(Backend::Local(LocalStore::new(root)))
    }

    /// A store in a bucket. Nothing is connected, and no thread is started, before the first question.
    pub fn in_bucket(bucket: Bucket, options: BucketOptions) -> Self {
        Self(Backend::Remote(RemoteStore::new(bucket, options)))
    }

    /// A store at a location; `options` are for buckets.
    pub fn at(location: Location, options: BucketOptions) -> Self {
        match location {
            Location::Directory(root) => Self::new(root),
            Location::Bucket(bucket) => Self::in_bucket(bucket, options),
        }
    }

    /// The part of this store that belongs to one tenant alone: another tenant's references mean nothing in it.
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self(match &self.0 {
            Backend::Local(store) => Backend::Local(store.for_tenant(tenant)),
            Backend::Remote(store) => Backend::Remote(store.for_tenant(tenant)),
        })
    }

    /// Stores everything that `content` gives as the next version of `name`.
    pub fn put(
        &self,
        scope: &Scope,
        name: &ArtifactName,
        content: &mut dyn Read,
        origin: Origin,
    ) -> Result<Artifact, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.put(scope, name, content, origin),
            Backend::Remote(store) => store.put(scope, name, content, origin),
        }
    }

    /// The record that a reference means.
    pub fn resolve(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Artifact, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.resolve(scope, reference),
            Backend::Remote(store) => store.resolve(scope, reference),
        }
    }

    /// The content of a stored version, checked against its digest to the last byte as it is read.
    pub fn open(&self, artifact: &Artifact) -> Result<CheckedContent, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.open(artifact),
            Backend::Remote(store) => store.open(artifact),
        }
    }

    /// The bytes of a stored version from `range.start` up to, not with, `range.end`. They are *not* checked against
    /// the digest, which is a promise about the whole; a store that has fewer bytes fails.
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

    /// The content of a stored version as a file of this host, checked as a whole before it is handed out.
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

    /// Removes one version, or all of a name. Their numbers are never given again.
    pub fn remove(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Vec<Artifact>, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.remove(scope, reference),
            Backend::Remote(store) => store.remove(scope, reference),
        }
    }

    /// Frees content that no version has any more. Writers wait for it, but only while there is something to free. In a
    /// bucket nothing is freed: it has no lock that would keep what a writer on another host just found there.
    pub fn collect_garbage(&self) -> Result<Freed, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.collect_garbage(),
            Backend::Remote(_) => Ok(Freed::default()),
        }
    }

    /// Removes everything of a scope, its used numbers too: the scope itself is gone. Tells whether there may be
    /// something to free now.
    pub fn remove_scope(&self, scope: &Scope) -> Result<bool, StoreError> {
        match &self.0 {
            Backend::Local(store) => store.remove_scope(scope),
            Backend::Remote(store) => store.remove_scope(scope).map(|()| false),
        }
    }
}

/// Where it lies.
impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Local(store) => store.root().display().fmt(f),
            Backend::Remote(store) => store.fmt(f),
        }
    }
}
