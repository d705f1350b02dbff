//! Objects with keys of the caller's choice, in a bucket.

use std::io::Read;

use futures_util::TryStreamExt;
use object_store::path::{DELIMITER, Path};
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use skillbox_model::Digest;

use crate::bucket::connection::{RequestSize, none_if_not_found};
use crate::bucket::{Download, SpooledContent};
use crate::content::Content;
use crate::remote_store::RemoteStore;
use crate::{ArtifactName, CheckedContent, ObjectKey, StoreError};

impl RemoteStore {
    pub(crate) fn create_object(&self, key: &ObjectKey, content: &[u8]) -> Result<bool, StoreError> {
        let (connection, key) = (self.connection()?, self.object_key(key));
        let (owned_key, content) = (key.clone(), content.to_vec());
        connection.send_request("write", &key, RequestSize::OneObject, |client| async move {
            match client
                .put_opts(&owned_key, content.into(), PutMode::Create.into())
                .await
            {
                Ok(_) => Ok(true),
                Err(Error::AlreadyExists { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    pub(crate) fn read_object(&self, key: &ObjectKey, max_bytes: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let (connection, key) = (self.connection()?, self.object_key(key));
        let owned_key = key.clone();
        connection.send_request("read", &key, RequestSize::OneObject, |client| async move {
            let Some(found) = none_if_not_found(client.get(&owned_key).await)? else {
                return Ok(None);
            };
            if found.meta.size > max_bytes {
                let message = format!("the object has {} bytes, over {max_bytes}", found.meta.size);
                return Err(Error::Generic {
                    store: "object",
                    source: message.into(),
                });
            }
            Ok(Some(found.bytes().await?.to_vec()))
        })
    }

    pub(crate) fn has_object(&self, key: &ObjectKey) -> Result<bool, StoreError> {
        let (connection, key) = (self.connection()?, self.object_key(key));
        let owned_key = key.clone();
        connection.send_request("look for", &key, RequestSize::OneObject, |client| async move {
            Ok(none_if_not_found(client.head(&owned_key).await)?.is_some())
        })
    }

    pub(crate) fn list_objects(&self, prefix: &ObjectKey) -> Result<Vec<String>, StoreError> {
        let (connection, prefix) = (self.connection()?, self.object_key(prefix));
        let owned_prefix = prefix.clone();
        connection.send_request("list", &prefix, RequestSize::ManyObjects, |client| async move {
            let mut names = Vec::new();
            let mut objects = client.list(Some(&owned_prefix));
            while let Some(object) = objects.try_next().await? {
                let below = object.location.as_ref().strip_prefix(owned_prefix.as_ref());
                let name = below.and_then(|below| below.strip_prefix(DELIMITER));
                names.extend(name.filter(|name| !name.contains(DELIMITER)).map(str::to_owned));
            }
            Ok(names)
        })
    }

    pub(crate) fn remove_object(&self, key: &ObjectKey) -> Result<(), StoreError> {
        let (connection, key) = (self.connection()?, self.object_key(key));
        let owned_key = key.clone();
        connection.send_request("remove", &key, RequestSize::OneObject, |client| async move {
            none_if_not_found(client.delete(&owned_key).await).map(drop)
        })
    }

    pub(crate) fn put_content(
        &self,
        prefix: &ObjectKey,
        name: &ArtifactName,
        content: &mut dyn Read,
    ) -> Result<(Digest, u64), StoreError> {
        let connection = self.connection()?;
        let content = SpooledContent::read(self.scratch(), name, content)?;
        let (digest, size) = (content.sha256, content.size);
        content.upload(&connection, &self.content_key(prefix, &digest))?;
        Ok((digest, size))
    }

    pub(crate) fn open_content(&self, prefix: &ObjectKey, digest: &Digest) -> Result<CheckedContent, StoreError> {
        let (connection, key) = (self.connection()?, self.content_key(prefix, digest));
        let owned_key = key.clone();
        let answer = connection.send_request("read", &key, RequestSize::OneObject, |client| async move {
            client.get(&owned_key).await
        })?;
        let download = Download::new(connection, key.to_string(), answer);
        Ok(CheckedContent::new(Content::Download(download), *digest))
    }

    fn content_key(&self, prefix: &ObjectKey, digest: &Digest) -> Path {
        let blob = crate::layout::blob_path(digest);
        Path::from(format!("{}{DELIMITER}{}", self.object_key(prefix), blob.display()))
    }
}
