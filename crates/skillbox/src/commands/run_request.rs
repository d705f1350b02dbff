//! The request of `skillbox run`, from its options or from a file.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use skillbox_model::{ByteSize, ErrorBody, ErrorCode, InputMode, InputSpec, OutputSpec, RunRequest, Stdin};
use skillbox_runtime::wrong_field;

use crate::failure::Failure;

/// A request, or what a command reads, is held in memory as a whole.
const MAX_READ: u64 = 256 << 20;

/// What is run, with which inputs, and what comes back.
#[derive(Args, Debug)]
pub struct RequestArgs {
    /// The skill
    #[arg(required_unless_present = "request")]
    skill: Option<String>,
    /// One word is a shell command line; several are a program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Run this script of the skill without a shell; the words after -- are its arguments
    #[arg(long, value_name = "PATH")]
    script: Option<String>,
    /// Working directory: below the skill, or $WORK_DIR, $OUTPUT_DIR, …
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Set a variable; may be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<String>,
    /// What the command reads; - is our own standard input
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Place a file or directory in the workspace: a path, or artifact://, host://, workspace://, skill://; may be repeated
    #[arg(long, value_name = "FROM[=TO][,link]")]
    input: Vec<String>,
    /// Bring back files that match, relative to the workspace; may be repeated
    #[arg(long, value_name = "GLOB")]
    output: Vec<String>,
    /// End the run after so many seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// Store the files as artifacts, with this before their names
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, default_missing_value = "")]
    save: Option<String>,
    /// Read the whole request as JSON from this file; - is standard input. A skill that is named too must be the same
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "script", "cwd", "env", "stdin", "input", "output", "timeout", "save"])]
    request: Option<PathBuf>,
}

/// A request, and the directories that the person allowed by naming files in them.
#[derive(Debug)]
pub struct Asked {
    /// The request.
    pub request: RunRequest,
    /// Directories of files that were given as plain paths.
    pub used_directories: Vec<PathBuf>,
}

impl RequestArgs {
    /// The request that these options make.
    pub fn to_request(&self) -> Result<Asked, Failure> {
        if let Some(path) = &self.request {
            return Ok(Asked {
                request: self.agreeing(parse_request(&read(path, "request")?)?)?,
                used_directories: Vec::new(),
            });
        }
        let mut used_directories = Vec::new();
        let mut request = RunRequest {
            skill: self.skill.clone().unwrap_or_default(),
            ..RunRequest::default()
        };
        match (&self.script, self.command.as_slice()) {
            (Some(script), args) => {
                request.script = Some(script.clone());
                request.args = args.to_vec();
            }
            (None, [line]) => request.command = Some(line.clone()),
            (None, argv) => request.argv = argv.to_vec(),
        }
        request.cwd.clone_from(&self.cwd);
        for (index, pair) in self.env.iter().enumerate() {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(&format!("env[{index}]"), format!("{pair:?} has no `=`")))?;
            request.env.insert(name.to_owned(), value.to_owned());
        }
        let stdin = self.stdin.as_deref().map(|path| read(path, "stdin"));
        request.stdin = stdin.transpose()?.map(Stdin);
        for (index, text) in self.input.iter().enumerate() {
            request.inputs.push(input(text, index, &mut used_directories)?);
        }
        request.timeout = self.timeout;
        if !self.output.is_empty() || self.save.is_some() {
            request.outputs = Some(OutputSpec {
                globs: self.output.clone(),
                save: self.save.is_some(),
                name_template: self.save.clone().filter(|prefix| !prefix.is_empty()),
                ..OutputSpec::default()
            });
        }
        Ok(Asked {
            request,
            used_directories,
        })
    }

    /// A skill that stands on the command line too must be the one of the request.
    fn agreeing(&self, request: RunRequest) -> Result<RunRequest, Failure> {
        match &self.skill {
            Some(skill) if *skill != request.skill => {
                let message = format!("the request is for {:?}, the command line for {skill:?}", request.skill);
                Err(wrong("skill", message))
            }
            _ => Ok(request),
        }
    }
}

/// Parses a request's JSON; what is wrong is named by its path in the document.
pub fn parse_request(text: &[u8]) -> Result<RunRequest, Failure> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let request = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let body = ErrorBody::new(ErrorCode::InvalidRequest, error.inner().to_string());
        Failure::refused(match wrong_field(&error) {
            Some(field) => body.in_field(field),
            None => ErrorBody {
                hint: Some("a request is one JSON object; `skillbox tools --json` tells its fields".to_owned()),
                ..body
            },
        })
    })?;
    reader.end().map_err(|error| {
        let message = format!("there is more than one request: {error}");
        Failure::refused(ErrorBody::new(ErrorCode::InvalidRequest, message))
    })?;
    Ok(request)
}

/// `FROM[=TO][,link]`. A source without a scheme is a path of this host, and naming it allows it.
fn input(text: &str, index: usize, used: &mut Vec<PathBuf>) -> Result<InputSpec, Failure> {
    let (rest, mode) = match text.strip_suffix(",link") {
        Some(rest) => (rest, InputMode::Link),
        None => (text, InputMode::Copy),
    };
    let (from, to) = match rest.rsplit_once('=') {
        Some((from, to)) => (from, Some(to.to_owned())),
        None => (rest, None),
    };
    let from = if from.contains("://") {
        from.to_owned()
    } else {
        let refused = |why: &dyn Display| wrong(&format!("inputs[{index}].from"), format!("{from:?}: {why}"));
        let path = host_path(Path::new(from)).map_err(|error| refused(&error))?;
        used.push(path.parent().unwrap_or(&path).to_owned());
        let text = path.to_str().ok_or_else(|| refused(&"its path is not UTF-8"))?;
        format!("host://{text}")
    };
    Ok(InputSpec {
        from,
        to,
        mode,
        pin: false,
    })
}

/// An absolute path without `..`, which is what the way to the file means; the file itself may be a link, and is looked
/// at later.
fn host_path(typed: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(typed)?;
    if !path.components().any(|part| part == Component::ParentDir) {
        return Ok(path);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => path.canonicalize(),
    }
}

fn read(path: &Path, field: &str) -> Result<Vec<u8>, Failure> {
    let refused = |message| Failure::refused(ErrorBody::new(ErrorCode::InvalidRequest, message).in_field(field));
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
        Box::new(file)
    };
    let mut bytes = Vec::new();
    file.take(MAX_READ + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
    if bytes.len() as u64 > MAX_READ {
        return Err(refused(format!(
            "{} has more than {}",
            path.display(),
            ByteSize(MAX_READ)
        )));
    }
    Ok(bytes)
}

fn wrong(field: &str, message: String) -> Failure {
    Failure::refused(ErrorBody::new(ErrorCode::InvalidRequest, message).in_field(field))
}
