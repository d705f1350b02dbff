//! Where the jobs of a batch come from: a file of requests, or files and a command.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use skillbox_batch::{BadLines, BatchError, BatchRecord, FoundFiles, JobList, JobTemplate, find_files};
use skillbox_model::{ByteSize, ErrorBody, ErrorCode, OutputSpec, RunRequest};
use skillbox_runtime::Runtime;

use super::arguments::{BatchRunArgs, TemplateArgs};
use crate::commands::run_input;
use crate::commands::run_request::parse_variables;
use crate::failure::Failure;

/// The maximum size of a file of requests, which is held in memory.
const MAX_LIST_BYTES: u64 = 1 << 30;

/// The source of the jobs, read before the runtime exists.
pub struct JobSource {
    kind: Kind,
    /// What identifies the batch.
    identity: Vec<u8>,
    /// The batch for people.
    description: String,
    /// The directories in which the jobs' inputs are, because the user named them.
    pub input_directories: Vec<PathBuf>,
}

enum Kind {
    Lines {
        name: String,
        text: Vec<u8>,
    },
    Files {
        template: Box<JobTemplate>,
        found: FoundFiles,
    },
}

impl JobSource {
    /// Reads the file of requests, or finds the files of `--each`.
    pub fn read(args: &BatchRunArgs) -> Result<Self, Failure> {
        match &args.jobs_file {
            Some(path) => Self::read_lines(path),
            None => Self::find_files(&args.template),
        }
    }

    fn read_lines(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let invalid = |reason: &dyn std::fmt::Display| {
            let body = ErrorBody::new(ErrorCode::InvalidRequest, format!("cannot read {name}: {reason}"));
            Failure::from_body(body.with_field("jobs"))
        };
        let is_stdin = path == Path::new("-");
        let file: Box<dyn Read> = if is_stdin {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(File::open(path).map_err(|error| invalid(&error))?)
        };
        let mut text = Vec::new();
        let mut limited = file.take(MAX_LIST_BYTES + 1);
        limited.read_to_end(&mut text).map_err(|error| invalid(&error))?;
        if text.len() as u64 > MAX_LIST_BYTES {
            return Err(invalid(&format!("it is larger than {}", ByteSize(MAX_LIST_BYTES))));
        }
        let identity = if is_stdin {
            b"-".to_vec()
        } else {
            let absolute = std::path::absolute(path).map_err(|error| invalid(&error))?;
            absolute.into_os_string().into_encoded_bytes()
        };
        Ok(Self {
            identity: [b"lines\0".as_slice(), &identity].concat(),
            description: if is_stdin {
                "jobs from standard input".to_owned()
            } else {
                format!("jobs of {name}")
            },
            input_directories: Vec::new(),
            kind: Kind::Lines { name, text },
        })
    }

    fn find_files(args: &TemplateArgs) -> Result<Self, Failure> {
        let (request, mut input_directories) = template_request(args)?;
        let working_dir = std::path::absolute(".").map_err(|error| {
            Failure::new(
                ErrorCode::Storage,
                format!("cannot determine the working directory: {error}"),
            )
        })?;
        let found = find_files(&args.each, &working_dir).map_err(batch_failure)?;
        input_directories.extend(found.base_directories.iter().cloned());
        let identity = serde_json::to_vec(&(&args.each, &working_dir, &request))
            .map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
        let description = format!("{} for each of {}", request.skill, args.each.join(" "));
        let template = Box::new(JobTemplate::new(request).map_err(batch_failure)?);
        Ok(Self {
            kind: Kind::Files { template, found },
            identity: [b"files\0".as_slice(), &identity].concat(),
            description,
            input_directories,
        })
    }

    /// Checks every job against the runtime.
    pub fn into_jobs(self, runtime: &Runtime, skip_bad: bool) -> Result<(JobList, BatchRecord), Failure> {
        let bad_lines = if skip_bad { BadLines::Skip } else { BadLines::Refuse };
        let catalog = runtime.catalog();
        let check = |request: &RunRequest| runtime.check_request(request, &catalog);
        let jobs = match self.kind {
            Kind::Lines { name, text } => JobList::from_lines(text, &name, bad_lines, &check),
            Kind::Files { template, found } => JobList::from_files(*template, found, bad_lines, &check),
        };
        let jobs = jobs.map_err(batch_failure)?;
        let record = BatchRecord::new(&self.identity, self.description, jobs.len());
        Ok((jobs, record))
    }
}

/// The request of `--each`, with its placeholders.
fn template_request(args: &TemplateArgs) -> Result<(RunRequest, Vec<PathBuf>), Failure> {
    let mut input_directories = Vec::new();
    let mut request = RunRequest {
        skill: args.skill.clone().unwrap_or_default(),
        with_skills: args.with_skill.clone(),
        cwd: args.cwd.clone(),
        env: parse_variables(&args.env)?,
        ..RunRequest::default()
    };
    match (&args.script, args.command.as_slice()) {
        (None, []) => {
            return Err(Failure::invalid_field(
                "command",
                "no command is given after --".to_owned(),
            ));
        }
        (Some(script), words) => {
            request.script = Some(script.clone());
            request.args = words.to_vec();
        }
        (None, [line]) => request.command = Some(line.clone()),
        (None, words) => request.argv = words.to_vec(),
    }
    for (index, text) in args.input.iter().enumerate() {
        request
            .inputs
            .push(run_input::parse(text, index, &mut input_directories)?);
    }
    if !args.output.is_empty() {
        request.outputs = Some(OutputSpec {
            globs: args.output.clone(),
            inline: false,
            ..OutputSpec::default()
        });
    }
    Ok((request, input_directories))
}

/// The failure for an error of a batch.
pub fn batch_failure(error: BatchError) -> Failure {
    Failure::from_body(error.body())
}
