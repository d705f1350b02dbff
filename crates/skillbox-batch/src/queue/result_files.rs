//! Reads results from the object store, and copies their files to a result directory.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::thread;

use serde_json::Value;
use skillbox_model::{JobId, RelPath};

use super::batch_store::BatchStore;
use super::error::QueueError;
use super::message::{ListedJob, Manifest, ManifestFile};
use crate::result_directory::ResultDirectory;
use crate::result_line::ResultHead;

/// Results that are read before the first of them is used.
const READ_CHUNK: usize = 256;
/// Results that are read at the same time. Each read waits for the store.
const CONCURRENT_READS: usize = 8;

/// A result and what a batch reads of it.
pub(super) struct ReadResult {
    pub head: ResultHead,
    pub manifest: Manifest,
}

/// Calls `visit` with the results of jobs that have one, in their order.
pub(super) fn for_each_result(
    store: &BatchStore,
    jobs: &[ListedJob],
    visit: &mut dyn FnMut(&ListedJob, ReadResult) -> Result<(), QueueError>,
) -> Result<(), QueueError> {
    for chunk in jobs.chunks(READ_CHUNK) {
        let share = chunk.len().div_ceil(CONCURRENT_READS).max(1);
        let parts: Vec<_> = thread::scope(|scope| {
            let read_all = |jobs: &[ListedJob]| jobs.iter().map(|job| read(store, job)).collect::<Result<Vec<_>, _>>();
            let readers: Vec<_> = chunk
                .chunks(share)
                .map(|jobs| scope.spawn(move || read_all(jobs)))
                .collect();
            let joined = readers.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut jobs = chunk.iter();
        for part in parts {
            for result in part? {
                if let (Some(job), Some(result)) = (jobs.next(), result) {
                    visit(job, result)?;
                }
            }
        }
    }
    Ok(())
}

fn read(store: &BatchStore, job: &ListedJob) -> Result<Option<ReadResult>, QueueError> {
    let Some(manifest) = store.result(job)? else {
        return Ok(None);
    };
    let head = serde_json::from_value::<ResultHead>(manifest.result.clone());
    let head = head.map_err(|error| QueueError::Record(format!("the result of {} is damaged: {error}", job.id)))?;
    Ok(Some(ReadResult { head, manifest }))
}

/// The line of `results.jsonl` for a result: as on one host, and the worker.
pub(super) fn result_line(manifest: &Manifest) -> Vec<u8> {
    let mut result = manifest.result.clone();
    if let Value::Object(fields) = &mut result {
        fields.insert("worker".to_owned(), manifest.worker.clone().into());
    }
    let mut line = super::message::to_json(&result);
    line.push(b'\n');
    line
}

/// Copies the files of a job to its directory, which is replaced. Returns whether it has files.
pub(super) fn copy_files(
    store: &BatchStore,
    directory: &ResultDirectory,
    id: &JobId,
    manifest: &Manifest,
) -> Result<bool, QueueError> {
    let target = directory.job_directory(id);
    let failed = |source| QueueError::Io {
        action: "write the files of a job to",
        path: target.clone(),
        source,
    };
    directory.remove_job_files(id).map_err(failed)?;
    for file in &manifest.files {
        copy_file(store, &target, file).map_err(|error| match error {
            CopyError::Store(error) => error,
            CopyError::Io(error) => failed(error),
            CopyError::Name => QueueError::Record(format!(
                "the result of {id} has a file called {:?}, which is not written",
                file.name
            )),
        })?;
    }
    Ok(!manifest.files.is_empty())
}

enum CopyError {
    Store(QueueError),
    Io(io::Error),
    Name,
}

/// The worker chose the name. The directory is new and has no links, so a path without `..` stays below it. A name that
/// starts with a dot could configure programs.
fn copy_file(store: &BatchStore, target: &Path, file: &ManifestFile) -> Result<(), CopyError> {
    let name = RelPath::parse(&file.name).map_err(|_| CopyError::Name)?;
    if name.as_bytes().starts_with(b".") {
        return Err(CopyError::Name);
    }
    let path = target.join(name.as_path());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(CopyError::Io)?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut output = opened.map_err(CopyError::Io)?;
    let mut content = store.open_content(&file.sha256).map_err(CopyError::Store)?;
    io::copy(&mut content, &mut output).map_err(CopyError::Io)?;
    Ok(())
}

/// Receives the line of a result and what it says.
type WriteLine<'a> = dyn FnMut(&[u8], &ResultHead) -> Result<(), QueueError> + 'a;

/// Writes the lines of all results to `write`, in the order of the list.
pub fn read_result_lines(store: &BatchStore, write: &mut WriteLine<'_>) -> Result<(), QueueError> {
    store.record()?;
    let Some((_, submission)) = store.newest_submission()? else {
        return Ok(());
    };
    let jobs = store.listed_jobs(&submission)?;
    let finished = store.finished_jobs()?;
    let jobs: Vec<ListedJob> = jobs.into_iter().filter(|job| finished.contains(job)).collect();
    for_each_result(store, &jobs, &mut |_, result| {
        write(&result_line(&result.manifest), &result.head)
    })
}

#[cfg(test)]
mod tests {
    use skillbox_artifacts::Store;
    use skillbox_model::Digest;

    use super::*;
    use crate::queue::batch_name::BatchName;
    use crate::queue::message::FORMAT_VERSION;
    use crate::result_directory::BatchRecord;

    #[test]
    fn h253_a_worker_cannot_write_outside_the_directory_of_its_job() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path().join("store"));
        let store = BatchStore::new(&store, &BatchName::parse("b").unwrap());
        let record = BatchRecord::new(b"x", "x".to_owned(), 1);
        let (directory, _) = ResultDirectory::open(&root.path().join("out"), &record, false).unwrap();
        let (sha256, size) = store.put_content(&mut &b"text"[..]).unwrap();
        let id = JobId::parse("one").unwrap();
        let copy = |name: &str, sha256: Digest| {
            let manifest = Manifest {
                version: FORMAT_VERSION,
                worker: "w".to_owned(),
                result: Value::Null,
                files: vec![ManifestFile {
                    name: name.to_owned(),
                    sha256,
                    size,
                }],
            };
            copy_files(&store, &directory, &id, &manifest)
        };
        for hostile in [
            "../../escaped",
            "/tmp/escaped",
            "a/../../../escaped",
            ".bashrc",
            ".ssh/config",
            "",
        ] {
            assert!(copy(hostile, sha256).is_err(), "{hostile}");
        }
        assert!(!root.path().join("escaped").exists() && !root.path().join("out/escaped").exists());
        assert!(
            copy("out/x", Digest::from_sha256([1; 32])).is_err(),
            "content that is not there"
        );
        // The control.
        assert!(copy("out/x.txt", sha256).unwrap());
        assert_eq!(fs::read(root.path().join("out/jobs/one/out/x.txt")).unwrap(), b"text");
    }
}
