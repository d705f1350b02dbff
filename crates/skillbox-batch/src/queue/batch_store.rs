//! A batch in the object store, which is its record: what was submitted, and one manifest for each finished job.
//!
//! ```text
//! batches/NAME/batch.json              which batch has this name
//! batches/NAME/submissions/00000001    what one `batch run` submitted; the newest counts
//! batches/NAME/cancelled/00000001      that submission was cancelled
//! batches/NAME/results/ID@KEY          the manifest of a job
//! batches/NAME/starts/ID@KEY/N         the job was started an Nth time, because a worker was lost
//! batches/NAME/cas/sha256/…            content: inputs, skills, lists of jobs, output files
//! ```

use std::collections::HashSet;
use std::io::Read;

use serde::de::DeserializeOwned;
use skillbox_artifacts::{ArtifactName, ObjectKey, Store};
use skillbox_model::{Digest, JobId};

use super::batch_name::BatchName;
use super::error::QueueError;
use super::message::{FORMAT_VERSION, ListedJob, MAX_MANIFEST_BYTES, MAX_RECORD_BYTES, Manifest, Submission, to_json};
use crate::result_directory::BatchRecord;

/// Contains all batches.
const BATCHES: &str = "batches";
/// The largest list of jobs.
const MAX_LIST_BYTES: u64 = 1 << 30;

/// One batch in the object store.
#[derive(Clone, Debug)]
pub struct BatchStore {
    store: Store,
    name: BatchName,
    root: ObjectKey,
}

impl BatchStore {
    /// The part of the store for this batch.
    pub fn new(store: &Store, name: &BatchName) -> Self {
        Self {
            store: store.clone(),
            name: name.clone(),
            root: key(format!("{BATCHES}/{name}")),
        }
    }

    /// Fails unless objects can be written to the store and read again.
    pub fn check_store(store: &Store) -> Result<(), QueueError> {
        let probe = key(format!("{BATCHES}-checks/{}", uuid::Uuid::now_v7()));
        let is_created = store.create_object(&probe, b"written to check that the store is writable")?;
        let is_taken = store.create_object(&probe, b"a second time")?;
        store.remove_object(&probe)?;
        match (is_created, is_taken) {
            (true, false) => Ok(()),
            _ => Err(QueueError::Record(format!(
                "the store {store} does not keep an existing object when it is created again"
            ))),
        }
    }

    /// The name of the batch.
    pub fn name(&self) -> &BatchName {
        &self.name
    }

    /// Claims the name for a batch. Returns the record of the batch that has it already.
    pub(super) fn claim(&self, record: &BatchRecord) -> Result<Option<BatchRecord>, QueueError> {
        match self.store.create_object(&self.key("batch.json"), &to_json(record))? {
            true => Ok(None),
            false => self.record().map(Some),
        }
    }

    /// The record of the batch.
    pub fn record(&self) -> Result<BatchRecord, QueueError> {
        let found = self.read::<BatchRecord>("batch.json")?;
        found.ok_or_else(|| QueueError::UnknownBatch {
            name: self.name.clone(),
            store: self.store.to_string(),
        })
    }

    /// The newest submission and its number.
    pub(super) fn newest_submission(&self) -> Result<Option<(u64, Submission)>, QueueError> {
        let numbers = self.store.list_objects(&self.key("submissions"))?;
        match numbers.iter().filter_map(|name| name.parse().ok()).max() {
            None => Ok(None),
            Some(number) => Ok(Some((number, self.submission(number)?))),
        }
    }

    /// A submission.
    pub(super) fn submission(&self, number: u64) -> Result<Submission, QueueError> {
        let found = self.read::<Submission>(&submission_name(number))?;
        let submission = found.ok_or_else(|| self.invalid(format!("submission {number} is missing")))?;
        match submission.version {
            FORMAT_VERSION => Ok(submission),
            version => Err(self.invalid(format!("submission {number} has the unknown version {version}"))),
        }
    }

    /// Records a submission. Returns false if the number is taken.
    pub(super) fn create_submission(&self, number: u64, submission: &Submission) -> Result<bool, QueueError> {
        let key = self.key(&submission_name(number));
        Ok(self.store.create_object(&key, &to_json(submission))?)
    }

    /// Marks a submission as cancelled.
    pub(super) fn cancel(&self, number: u64, reason: &str) -> Result<(), QueueError> {
        let key = self.key(&format!("cancelled/{number:08}"));
        self.store.create_object(&key, reason.as_bytes())?;
        Ok(())
    }

    /// Whether a submission was cancelled.
    pub(super) fn is_cancelled(&self, number: u64) -> Result<bool, QueueError> {
        Ok(self.store.has_object(&self.key(&format!("cancelled/{number:08}")))?)
    }

    /// The jobs of a submission.
    pub(super) fn listed_jobs(&self, submission: &Submission) -> Result<Vec<ListedJob>, QueueError> {
        let text = self.read_content(&submission.list, MAX_LIST_BYTES)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let jobs = lines.map(serde_json::from_slice).collect::<Result<Vec<_>, _>>();
        jobs.map_err(|error| self.invalid(format!("the list of jobs is damaged: {error}")))
    }

    /// The jobs with a result.
    pub(super) fn finished_jobs(&self) -> Result<HashSet<ListedJob>, QueueError> {
        let names = self.store.list_objects(&self.key("results"))?;
        Ok(names.iter().filter_map(|name| parse_result_name(name)).collect())
    }

    /// Records that a job is started once more after its first worker was lost. Returns the number of this start, at most
    /// one more than `max`. The count of the queue would include deliveries that led to no start.
    pub(super) fn record_start(&self, job: &ListedJob, max: u32) -> Result<u32, QueueError> {
        for start in 2..=max {
            let key = self.key(&format!("starts/{}@{}/{start}", job.id, job.key.hex()));
            if self.store.create_object(&key, b"")? {
                return Ok(start);
            }
        }
        Ok(max.saturating_add(1))
    }

    /// Whether a job has a result.
    pub(super) fn has_result(&self, job: &ListedJob) -> Result<bool, QueueError> {
        Ok(self.store.has_object(&self.result_key(job))?)
    }

    /// Creates the result of a job. Returns false if it has one already, which stays.
    pub(super) fn create_result(&self, job: &ListedJob, manifest: &Manifest) -> Result<bool, QueueError> {
        Ok(self.store.create_object(&self.result_key(job), &to_json(manifest))?)
    }

    /// Reads the result of a job.
    pub(super) fn result(&self, job: &ListedJob) -> Result<Option<Manifest>, QueueError> {
        let Some(text) = self.store.read_object(&self.result_key(job), MAX_MANIFEST_BYTES)? else {
            return Ok(None);
        };
        let manifest: Result<Manifest, _> = serde_json::from_slice(&text);
        let manifest =
            manifest.map_err(|error| self.invalid(format!("the result of {} is damaged: {error}", job.id)))?;
        let says = |field: &str| manifest.result.get(field).and_then(|value| value.as_str());
        if says("id") != Some(job.id.as_str()) || manifest.version != FORMAT_VERSION {
            return Err(self.invalid(format!("the result of {} belongs to another job", job.id)));
        }
        Ok(Some(manifest))
    }

    /// Removes the result of a job that is to run again.
    pub(super) fn remove_result(&self, job: &ListedJob) -> Result<(), QueueError> {
        Ok(self.store.remove_object(&self.result_key(job))?)
    }

    /// Stores content under its digest, once.
    pub(super) fn put_content(&self, content: &mut dyn Read) -> Result<(Digest, u64), QueueError> {
        let name = ArtifactName::parse(format!("{BATCHES}/{}", self.name));
        let name = name.unwrap_or_else(|error| unreachable!("a short plain name: {error}"));
        Ok(self.store.put_content(&self.root, &name, content)?)
    }

    /// Opens content. Its digest is verified while it is read.
    pub(super) fn open_content(&self, digest: &Digest) -> Result<impl Read + use<>, QueueError> {
        Ok(self.store.open_content(&self.root, digest)?)
    }

    /// Reads content into memory.
    pub(super) fn read_content(&self, digest: &Digest, max_bytes: u64) -> Result<Vec<u8>, QueueError> {
        let mut bytes = Vec::new();
        let mut content = self.open_content(digest)?;
        let read = (&mut content).take(max_bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.invalid(format!("the content {digest} cannot be read: {error}")))?;
        match bytes.len() as u64 <= max_bytes {
            true => Ok(bytes),
            false => Err(self.invalid(format!("the content {digest} has more than {max_bytes} bytes"))),
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, QueueError> {
        let Some(text) = self.store.read_object(&self.key(name), MAX_RECORD_BYTES)? else {
            return Ok(None);
        };
        let parsed = serde_json::from_slice(&text);
        parsed
            .map(Some)
            .map_err(|error| self.invalid(format!("{name} is damaged: {error}")))
    }

    fn key(&self, below: &str) -> ObjectKey {
        key(format!("{}/{below}", self.root))
    }

    fn result_key(&self, job: &ListedJob) -> ObjectKey {
        self.key(&format!("results/{}@{}", job.id, job.key.hex()))
    }

    fn invalid(&self, message: String) -> QueueError {
        QueueError::Record(format!(
            "the batch {} in the store {}: {message}",
            self.name, self.store
        ))
    }
}

fn key(text: String) -> ObjectKey {
    ObjectKey::parse(text).unwrap_or_else(|error| unreachable!("its parts are plain and short: {error}"))
}

fn submission_name(number: u64) -> String {
    format!("submissions/{number:08}")
}

/// The job of a manifest's name; none for other objects.
fn parse_result_name(name: &str) -> Option<ListedJob> {
    let (id, hex) = name.rsplit_once('@')?;
    Some(ListedJob {
        id: JobId::parse(id).ok()?,
        key: Digest::parse(&format!("sha256:{hex}")).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_created_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        BatchStore::check_store(&store).unwrap();
        let batch = BatchStore::new(&store, &BatchName::parse("b").unwrap());
        let job = ListedJob {
            id: JobId::parse("a.csv").unwrap(),
            key: Digest::from_sha256([7; 32]),
        };
        let manifest = |worker: &str| Manifest {
            version: FORMAT_VERSION,
            worker: worker.to_owned(),
            result: serde_json::json!({"id": "a.csv"}),
            files: Vec::new(),
        };
        assert!(!batch.has_result(&job).unwrap());
        assert!(batch.create_result(&job, &manifest("one")).unwrap());
        assert!(!batch.create_result(&job, &manifest("two")).unwrap());
        assert_eq!(batch.result(&job).unwrap().unwrap().worker, "one");
        assert_eq!(batch.finished_jobs().unwrap(), [job.clone()].into());
        batch.remove_result(&job).unwrap();
        assert!(batch.finished_jobs().unwrap().is_empty());
    }

    #[test]
    fn h251_a_damaged_or_exchanged_record_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let batch = BatchStore::new(&store, &BatchName::parse("b").unwrap());
        let job = |id: &str| ListedJob {
            id: JobId::parse(id).unwrap(),
            key: Digest::from_sha256([7; 32]),
        };
        let manifest = Manifest {
            version: FORMAT_VERSION,
            worker: "one".to_owned(),
            result: serde_json::json!({"id": "other"}),
            files: Vec::new(),
        };
        batch.create_result(&job("a"), &manifest).unwrap();
        assert!(matches!(batch.result(&job("a")), Err(QueueError::Record(_))));
        // The control: the same manifest under its own name.
        batch.create_result(&job("other"), &manifest).unwrap();
        assert!(batch.result(&job("other")).unwrap().is_some());
        let (digest, _) = batch.put_content(&mut &b"right"[..]).unwrap();
        assert_eq!(batch.read_content(&digest, 100).unwrap(), b"right");
        assert!(batch.read_content(&digest, 4).is_err());
        let hex = digest.hex();
        let path = directory.path().join("batches/b/cas/sha256").join(&hex[..2]).join(&hex);
        std::fs::write(path, "wrong").unwrap();
        assert!(batch.read_content(&digest, 100).is_err());
    }
}
