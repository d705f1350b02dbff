//! The jobs of a batch, each expanded when it is needed.

use std::collections::HashSet;
use std::ops::Range;

use skillbox_model::{JobId, RunRequest};
use skillbox_runtime::RunError;

use crate::error::{BadLine, BatchError, MAX_JOBS};
use crate::file_glob::{FoundFile, FoundFiles};
use crate::job_lines::JobLine;
use crate::template::JobTemplate;

/// The number of bad lines that an error lists.
const LISTED_BAD_LINES: usize = 20;

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id, unique in the batch.
    pub id: JobId,
    /// The request.
    pub request: RunRequest,
}

/// The jobs of a batch. Every job was checked; requests are kept in their short form, text or a template and a file.
#[derive(Debug)]
pub struct JobList {
    source: Source,
    /// The lines or files that were left out.
    skipped: Vec<BadLine>,
}

#[derive(Debug)]
enum Source {
    Lines {
        text: Vec<u8>,
        /// The number of each line and its place in `text`.
        lines: Vec<(u32, Range<usize>)>,
    },
    Files {
        template: Box<JobTemplate>,
        files: Vec<FoundFile>,
    },
}

/// Whether bad lines are left out or end the batch before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLines {
    /// They end it.
    Refuse,
    /// They are left out.
    Skip,
}

type CheckRequest<'a> = dyn Fn(&RunRequest) -> Result<(), RunError> + 'a;

impl JobList {
    /// Reads lines of JSON. `name` is the name of the list in errors.
    pub fn from_lines(
        text: Vec<u8>,
        name: &str,
        bad_lines: BadLines,
        check: &CheckRequest<'_>,
    ) -> Result<Self, BatchError> {
        let mut ids = HashSet::new();
        let (mut lines, mut bad) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let (number, range) = (index + 1, start..start + line.len());
            start = range.end + 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let checked = JobLine::parse(line, number).and_then(|line| {
                check(&line.request).map_err(|error| bad_line(number, &error))?;
                add_id(&mut ids, &line.id.unwrap_or_else(|| default_id(number)), number)
            });
            match checked {
                Ok(()) => lines.push((u32::try_from(number).unwrap_or(u32::MAX), range)),
                Err(error) => bad.push(error),
            }
            if lines.len() > MAX_JOBS {
                return Err(BatchError::TooManyJobs);
            }
        }
        Self::finish(Source::Lines { text, lines }, bad, name, bad_lines)
    }

    /// One job for each file.
    pub fn from_files(
        template: JobTemplate,
        found: FoundFiles,
        bad_lines: BadLines,
        check: &CheckRequest<'_>,
    ) -> Result<Self, BatchError> {
        let mut bad = found.bad;
        let mut ids = HashSet::new();
        let mut files = Vec::with_capacity(found.files.len());
        for (index, file) in found.files.into_iter().enumerate() {
            let number = index + 1;
            let checked = check(&template.expand(&file, index)).map_err(|error| bad_line(number, &error));
            match checked.and_then(|()| add_id(&mut ids, &file.id, number)) {
                Ok(()) => files.push(file),
                Err(error) => bad.push(error),
            }
        }
        let template = Box::new(template);
        Self::finish(Source::Files { template, files }, bad, "--each", bad_lines)
    }

    fn finish(source: Source, bad: Vec<BadLine>, name: &str, bad_lines: BadLines) -> Result<Self, BatchError> {
        if !bad.is_empty() && bad_lines == BadLines::Refuse {
            return Err(BatchError::BadLines {
                source_name: name.to_owned(),
                unnamed: bad.len().saturating_sub(LISTED_BAD_LINES),
                lines: bad.into_iter().take(LISTED_BAD_LINES).collect(),
            });
        }
        let list = Self { source, skipped: bad };
        match list.len() {
            0 => Err(BatchError::NoJobs(name.to_owned())),
            _ => Ok(list),
        }
    }

    /// The number of jobs.
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Lines { lines, .. } => lines.len(),
            Source::Files { files, .. } => files.len(),
        }
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lines or files that were left out because they are bad.
    pub fn skipped(&self) -> &[BadLine] {
        &self.skipped
    }

    /// The job at an index.
    pub fn get(&self, index: usize) -> Option<Job> {
        match &self.source {
            Source::Lines { text, lines } => {
                let (number, range) = lines.get(index)?;
                let number = usize::try_from(*number).ok()?;
                let line = JobLine::parse(&text[range.clone()], number).ok()?;
                Some(Job {
                    id: line.id.unwrap_or_else(|| default_id(number)),
                    request: line.request,
                })
            }
            Source::Files { template, files } => {
                let file = files.get(index)?;
                Some(Job {
                    id: file.id.clone(),
                    request: template.expand(file, index),
                })
            }
        }
    }
}

/// The id of a line without one. Lines that are appended later do not change it.
fn default_id(number: usize) -> JobId {
    JobId::parse(format!("line-{number}")).unwrap_or_else(|error| unreachable!("letters and digits: {error}"))
}

/// Adds the id of a job. Two jobs of one id would share one result and one directory.
fn add_id(ids: &mut HashSet<JobId>, id: &JobId, number: usize) -> Result<(), BadLine> {
    match ids.insert(id.clone()) {
        true => Ok(()),
        false => Err(BadLine {
            number,
            field: Some("id".to_owned()),
            message: format!("the id {id} is used by an earlier line"),
        }),
    }
}

fn bad_line(number: usize, error: &RunError) -> BadLine {
    let body = error.body();
    BadLine {
        number,
        field: body.field,
        message: body.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str, bad_lines: BadLines) -> Result<JobList, BatchError> {
        JobList::from_lines(text.into(), "jobs.jsonl", bad_lines, &|_| Ok(()))
    }

    #[test]
    fn two_files_never_share_an_id() {
        let template = || {
            let request = RunRequest {
                argv: vec!["true".to_owned()],
                ..RunRequest::default()
            };
            JobTemplate::new(request).unwrap()
        };
        let files = |ids: &[&str]| FoundFiles {
            files: ids
                .iter()
                .map(|id| FoundFile::for_test(&format!("/data/{id}"), id))
                .collect(),
            ..FoundFiles::default()
        };
        let jobs = |ids, bad_lines| JobList::from_files(template(), files(ids), bad_lines, &|_| Ok(()));
        assert_eq!(jobs(&["a", "b"], BadLines::Refuse).unwrap().len(), 2);
        assert!(jobs(&["a", "a"], BadLines::Refuse).is_err());
        let skipping = jobs(&["a", "a"], BadLines::Skip).unwrap();
        assert_eq!((skipping.len(), skipping.skipped().len()), (1, 1));
    }

    #[test]
    fn every_line_is_a_job() {
        let text = "{\"skill\":\"a\",\"command\":\"1\"}\n\n  \n{\"id\":\"x\",\"skill\":\"b\",\"command\":\"2\"}";
        let jobs = list(text, BadLines::Refuse).unwrap();
        assert_eq!(jobs.len(), 2);
        let (first, second) = (jobs.get(0).unwrap(), jobs.get(1).unwrap());
        assert_eq!((first.id.as_str(), first.request.skill.as_str()), ("line-1", "a"));
        assert_eq!((second.id.as_str(), second.request.skill.as_str()), ("x", "b"));
        assert!(jobs.get(2).is_none());
    }

    #[test]
    fn bad_lines_and_duplicate_ids_end_the_batch_or_are_left_out() {
        let text = "{\"id\":\"x\",\"skill\":\"a\"}\nnonsense\n{\"id\":\"x\",\"skill\":\"b\"}\n{\"skill\":\"c\"}\n";
        let error = list(text, BadLines::Refuse).unwrap_err();
        let BatchError::BadLines { lines, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [2, 3]);
        assert!(error.to_string().contains("jobs.jsonl:3: id: "), "{error}");
        assert_eq!(error.body().field.as_deref(), Some("line 2"));
        let jobs = list(text, BadLines::Skip).unwrap();
        assert_eq!((jobs.len(), jobs.skipped().len()), (2, 2));
        assert_eq!(jobs.get(1).unwrap().id.as_str(), "line-4");
        assert!(matches!(list("\n", BadLines::Refuse), Err(BatchError::NoJobs(_))));
    }
}
