//! Builds the request of `skillbox run` from its options or from a file.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use skillbox_model::{ByteSize, ErrorBody, ErrorCode, InputMode, InputSpec, OutputSpec, RunRequest, Stdin};
use skillbox_runtime::find_invalid_field;

use crate::failure::Failure;

/// The maximum size of a request or of standard input, which are held in memory.
const MAX_INPUT_BYTES: u64 = 256 << 20;

/// The command, its inputs and its outputs.
#[derive(Args, Debug)]
pub struct RequestArgs {
    /// Name of the skill
    #[arg(required_unless_present = "request")]
    skill: Option<String>,
    /// One word: a shell command line; several words: a program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Run this script of the skill without a shell; words after -- are its arguments
    #[arg(long, value_name = "PATH")]
    script: Option<String>,
    /// Working directory: relative to the skill, or below $WORK_DIR, $OUTPUT_DIR, …
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Set an environment variable; repeatable
    #[arg(long, value_name = "K=V")]
    env: Vec<String>,
    /// File for standard input; - is the standard input of skillbox
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Copy a file or directory into the workspace: a path, or an artifact://, host://, workspace:// or skill:// URL; repeatable
    #[arg(long, value_name = "FROM[=TO][,link]")]
    input: Vec<String>,
    /// Collect the files that match, relative to the workspace; repeatable
    #[arg(long, value_name = "GLOB")]
    output: Vec<String>,
    /// End the run after this time
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// Save the collected files as artifacts, with this name prefix
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, default_missing_value = "")]
    save: Option<String>,
    /// Read the whole request as JSON from this file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "script", "cwd", "env", "stdin", "input", "output", "timeout", "save"])]
    request: Option<PathBuf>,
}

/// A request, and the directories whose files it may use as inputs.
#[derive(Debug)]
pub struct ParsedRequest {
    /// The request.
    pub request: RunRequest,
    /// The directories of inputs given as plain paths: by naming a file, the user allows it.
    pub input_directories: Vec<PathBuf>,
}

impl RequestArgs {
    /// Builds the request.
    pub fn to_request(&self) -> Result<ParsedRequest, Failure> {
        if let Some(path) = &self.request {
            return Ok(ParsedRequest {
                request: self.check_skill(parse_request(&read_bytes(path, "request")?)?)?,
                input_directories: Vec::new(),
            });
        }
        let mut input_directories = Vec::new();
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
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                invalid_field(
                    &format!("env[{index}]"),
                    format!("{pair:?} is not of the form NAME=VALUE"),
                )
            })?;
            request.env.insert(name.to_owned(), value.to_owned());
        }
        let stdin = self.stdin.as_deref().map(|path| read_bytes(path, "stdin"));
        request.stdin = stdin.transpose()?.map(Stdin);
        for (index, text) in self.input.iter().enumerate() {
            request.inputs.push(parse_input(text, index, &mut input_directories)?);
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
        Ok(ParsedRequest {
            request,
            input_directories,
        })
    }

    /// Checks that a skill on the command line is the one in the request.
    fn check_skill(&self, request: RunRequest) -> Result<RunRequest, Failure> {
        match &self.skill {
            Some(skill) if *skill != request.skill => {
                let message = format!("the request names {:?}, the command line {skill:?}", request.skill);
                Err(invalid_field("skill", message))
            }
            _ => Ok(request),
        }
    }
}

/// Parses a request from JSON; an error names the field.
pub fn parse_request(text: &[u8]) -> Result<RunRequest, Failure> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let request = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let body = ErrorBody::new(ErrorCode::InvalidRequest, error.inner().to_string());
        Failure::of_run(match find_invalid_field(&error) {
            Some(field) => body.with_field(field),
            None => ErrorBody {
                hint: Some("a request is one JSON object; `skillbox tools --json` describes its fields".to_owned()),
                ..body
            },
        })
    })?;
    reader.end().map_err(|error| {
        let message = format!("unexpected text after the request: {error}");
        Failure::of_run(ErrorBody::new(ErrorCode::InvalidRequest, message))
    })?;
    Ok(request)
}

/// Parses `FROM[=TO][,link]`. A source without a scheme is a path on this host, and naming it allows it.
fn parse_input(text: &str, index: usize, directories: &mut Vec<PathBuf>) -> Result<InputSpec, Failure> {
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
        let invalid =
            |reason: &dyn Display| invalid_field(&format!("inputs[{index}].from"), format!("{from:?}: {reason}"));
        let path = host_path(Path::new(from)).map_err(|error| invalid(&error))?;
        directories.push(path.parent().unwrap_or(&path).to_owned());
        let text = path.to_str().ok_or_else(|| invalid(&"the path is not UTF-8"))?;
        format!("host://{text}")
    };
    Ok(InputSpec {
        from,
        to,
        mode,
        pin: false,
    })
}

/// Makes a path absolute and removes `..`. The last component may be a symbolic link, which is checked later.
fn host_path(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if !path.components().any(|part| part == Component::ParentDir) {
        return Ok(path);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => path.canonicalize(),
    }
}

fn read_bytes(path: &Path, field: &str) -> Result<Vec<u8>, Failure> {
    let invalid = |message| Failure::of_run(ErrorBody::new(ErrorCode::InvalidRequest, message).with_field(field));
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| invalid(format!("cannot read {}: {error}", path.display())))?;
        Box::new(file)
    };
    let mut bytes = Vec::new();
    file.take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(format!("cannot read {}: {error}", path.display())))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(invalid(format!(
            "{} is larger than {}",
            path.display(),
            ByteSize(MAX_INPUT_BYTES)
        )));
    }
    Ok(bytes)
}

fn invalid_field(field: &str, message: String) -> Failure {
    Failure::of_run(ErrorBody::new(ErrorCode::InvalidRequest, message).with_field(field))
}
