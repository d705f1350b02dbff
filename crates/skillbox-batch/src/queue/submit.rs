//! Submits a batch: content to the object store, then one message for each job without a result to the queue.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use skillbox_model::{Digest, RunRequest, SkillName};
use skillbox_repository::Catalog;
use skillbox_runtime::{PortableSource, RequestDigests, Runtime};

use super::batch_name::Priority;
use super::batch_store::BatchStore;
use super::connection::Queue;
use super::error::QueueError;
use super::job_stream;
use super::message::{
    FORMAT_VERSION, InputContent, JobMessage, ListedJob, MAX_MESSAGE_BYTES, SkillContent, Submission, to_json,
};
use super::publish::{Outgoing, publish_all};
use super::skill_archive;
use crate::batch::BatchRun;
use crate::job_list::Job;
use crate::result_directory::BatchRecord;
use crate::result_line::JobStatus;

/// How a batch is submitted.
#[derive(Clone, Copy, Debug)]
pub struct SubmitOptions {
    /// Whether an earlier run of the same batch is continued.
    pub resume: bool,
    /// The priority of its jobs.
    pub priority: Priority,
    /// How long a worker may be silent before its jobs go to another.
    pub ack_wait: Duration,
}

/// A batch that is on the queue.
#[derive(Debug)]
pub struct SubmittedBatch {
    /// The number of the submission.
    pub(super) number: u64,
    /// All its jobs.
    pub(super) jobs: Vec<ListedJob>,
    /// The jobs that had a result already, of this and of earlier submissions.
    pub(super) finished: HashSet<ListedJob>,
    /// The number of jobs of this submission that had a result already.
    pub resumed: usize,
    /// The number of copies that the servers keep of each message.
    pub copies: usize,
}

/// Submits the jobs of a batch that have no result.
pub fn submit(
    batch: BatchRun<'_>,
    record: &BatchRecord,
    queue: &Queue,
    store: &BatchStore,
    options: SubmitOptions,
) -> Result<SubmittedBatch, QueueError> {
    claim_name(store, record, options.resume)?;
    let prepared = prepare_jobs(batch, store)?;
    if batch.cancel.is_cancelled() {
        return Err(QueueError::Interrupted);
    }
    let submission = Submission {
        version: FORMAT_VERSION,
        jobs: prepared.jobs.len(),
        list: put_list(store, &prepared.jobs)?,
        skills: prepared.skills,
        retry: batch.options.retry.clone(),
    };
    let number = record_submission(store, &submission)?;
    let mut finished = store.finished_jobs()?;
    if batch.options.rerun_failed {
        for job in prepared.jobs.iter().filter(|job| finished.contains(job)) {
            let failed = |status: &str| status != JobStatus::Ok.as_str();
            let manifest = store.result(job)?;
            let status = manifest
                .as_ref()
                .and_then(|manifest| manifest.result["status"].as_str());
            if status.is_none_or(failed) {
                store.remove_result(job)?;
            }
        }
        finished = store.finished_jobs()?;
    }
    let copies = queue.wait(job_stream::create(queue, store.name(), options.ack_wait))?;
    let messages = prepared.messages.read().map_err(spool_error)?;
    let outgoing = messages.filter_map(|message| {
        let message = match message {
            Ok(message) => message,
            Err(error) => return Some(Err(spool_error(error))),
        };
        let message = JobMessage {
            submission: number,
            ack_wait_ms: u64::try_from(options.ack_wait.as_millis()).unwrap_or(u64::MAX),
            ..message
        };
        (!finished.contains(&message.job())).then(|| {
            Ok(Outgoing {
                subject: store.name().job(options.priority, &message.id, &message.key),
                payload: to_json(&message),
            })
        })
    });
    queue.wait(publish_all(queue, outgoing, || batch.cancel.is_cancelled()))?;
    let resumed = prepared.jobs.iter().filter(|job| finished.contains(job)).count();
    Ok(SubmittedBatch {
        number,
        jobs: prepared.jobs,
        finished,
        resumed,
        copies,
    })
}

fn claim_name(store: &BatchStore, record: &BatchRecord, resume: bool) -> Result<(), QueueError> {
    match store.claim(record)? {
        Some(found) if !found.is_same_batch(record) => Err(QueueError::NameTaken {
            message: format!(
                "the name {} belongs to another batch: {}",
                store.name(),
                found.description
            ),
            hint: "choose another --name",
        }),
        Some(_) if !resume => Err(QueueError::NameTaken {
            message: format!("the batch {} was submitted already", store.name()),
            hint: "add --resume to run what is left, or choose another --name",
        }),
        _ => Ok(()),
    }
}

fn put_list(store: &BatchStore, jobs: &[ListedJob]) -> Result<Digest, QueueError> {
    let mut list = Vec::new();
    for job in jobs {
        list.extend(to_json(job));
        list.push(b'\n');
    }
    Ok(store.put_content(&mut list.as_slice())?.0)
}

/// The number of the newest submission if it is the same and goes on, or of a new one.
fn record_submission(store: &BatchStore, submission: &Submission) -> Result<u64, QueueError> {
    loop {
        let newest = store.newest_submission()?;
        let next = match newest {
            Some((number, found)) if found == *submission && !store.is_cancelled(number)? => return Ok(number),
            Some((number, _)) => number + 1,
            None => 1,
        };
        if store.create_submission(next, submission)? {
            return Ok(next);
        }
    }
}

/// All jobs, with their content in the object store.
struct PreparedJobs {
    jobs: Vec<ListedJob>,
    skills: BTreeMap<SkillName, SkillContent>,
    messages: SpooledMessages,
}

/// Uploads the content of all jobs, on several threads because each waits for the store.
fn prepare_jobs(batch: BatchRun<'_>, store: &BatchStore) -> Result<PreparedJobs, QueueError> {
    let preparer = Preparer {
        batch,
        store,
        catalog: batch.runtime.catalog(),
        digests: RequestDigests::new(batch.runtime),
        skills: Mutex::default(),
    };
    let next = AtomicUsize::new(0);
    let prepare = || -> Result<Vec<(usize, JobMessage)>, QueueError> {
        let mut prepared = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match batch.jobs.get(index) {
                Some(job) if !batch.cancel.is_cancelled() => prepared.push((index, preparer.prepare(job)?)),
                _ => return Ok(prepared),
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).max(4);
    let parts: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(prepare)).collect();
        let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut prepared = Vec::with_capacity(batch.jobs.len());
    for part in parts {
        prepared.extend(part?);
    }
    prepared.sort_unstable_by_key(|(index, _)| *index);
    let mut messages = SpooledMessages::new().map_err(spool_error)?;
    let mut jobs = Vec::with_capacity(prepared.len());
    for (_, message) in prepared {
        messages.push(&to_json(&message)).map_err(spool_error)?;
        jobs.push(message.job());
    }
    let skills = preparer.skills.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(PreparedJobs { jobs, skills, messages })
}

struct Preparer<'a> {
    batch: BatchRun<'a>,
    store: &'a BatchStore,
    catalog: Catalog,
    digests: RequestDigests<'a>,
    /// The skills that were uploaded.
    skills: Mutex<BTreeMap<SkillName, SkillContent>>,
}

impl Preparer<'_> {
    fn prepare(&self, job: Job) -> Result<JobMessage, QueueError> {
        let runtime = self.batch.runtime;
        let request = self.batch.prepare(job.request);
        let digest = |request: &RunRequest| self.digests.digest(request, &self.catalog, self.batch.cancel);
        let key = digest(&request)?.key;
        self.upload_skills(runtime, &request)?;
        let mut portable = request.clone();
        let mut contents = Vec::new();
        let mut read_files = false;
        for input in runtime.open_portable_inputs(&request, &self.catalog)? {
            let spec = &mut portable.inputs[input.index];
            spec.to = Some(input.to);
            let (mut content, is_executable): (Box<dyn Read>, bool) = match input.source {
                PortableSource::Artifact(reference) => {
                    spec.from = reference;
                    continue;
                }
                PortableSource::Bytes(bytes) => (Box::new(io::Cursor::new(bytes)), false),
                PortableSource::File { file, is_executable } => {
                    read_files = true;
                    (Box::new(file), is_executable)
                }
            };
            spec.from = String::new();
            let (sha256, size) = self.store.put_content(&mut content)?;
            contents.push(InputContent {
                index: input.index,
                display_text: input.display_text,
                sha256,
                size,
                is_executable,
            });
        }
        // The key is that of the uploaded content only if no file changed between the two readings.
        if read_files && digest(&request)?.key != key {
            return Err(QueueError::InputChanged(job.id));
        }
        let message = JobMessage {
            version: FORMAT_VERSION,
            submission: 0,
            ack_wait_ms: 0,
            id: job.id,
            key,
            request: portable,
            contents,
        };
        let bytes = to_json(&message).len();
        match bytes <= MAX_MESSAGE_BYTES {
            true => Ok(message),
            false => Err(QueueError::LargeRequest {
                id: message.id,
                bytes,
                max_bytes: MAX_MESSAGE_BYTES,
            }),
        }
    }

    fn upload_skills(&self, runtime: &Runtime, request: &RunRequest) -> Result<(), QueueError> {
        for name in runtime.skills_of_request(request, &self.catalog)? {
            let mut uploaded = self.skills.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(entry) = self.catalog.get(&name) else { continue };
            if uploaded.contains_key(entry.name()) {
                continue;
            }
            let unreadable = |source| {
                QueueError::Run(skillbox_runtime::RunError::Skill {
                    skill: entry.name().clone(),
                    source,
                })
            };
            let mut archive = tempfile::tempfile().map_err(spool_error)?;
            let directory = entry.open().map_err(unreadable)?;
            let digest = skill_archive::write(&directory, &mut BufWriter::new(&archive)).map_err(unreadable)?;
            archive.seek(SeekFrom::Start(0)).map_err(spool_error)?;
            let (archive, _) = self.store.put_content(&mut archive)?;
            uploaded.insert(entry.name().clone(), SkillContent { digest, archive });
        }
        Ok(())
    }
}

/// The messages of a batch, in a temporary file because there can be a million.
struct SpooledMessages(BufWriter<File>);

impl SpooledMessages {
    fn new() -> io::Result<Self> {
        tempfile::tempfile().map(BufWriter::new).map(Self)
    }

    fn push(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(message)?;
        self.0.write_all(b"\n")
    }

    fn read(self) -> io::Result<impl Iterator<Item = io::Result<JobMessage>>> {
        let mut file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        let lines = io::BufRead::split(BufReader::new(file), b'\n');
        Ok(lines.map(|line| serde_json::from_slice(&line?).map_err(io::Error::other)))
    }
}

fn spool_error(source: io::Error) -> QueueError {
    QueueError::Io {
        action: "write to the temporary directory",
        path: std::env::temp_dir(),
        source,
    }
}
