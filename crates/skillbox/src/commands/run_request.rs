//! The request of `skillbox run`, from its options or from a file.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use skillbox_model::{ErrorBody, ErrorCode, InputMode, InputSpec, OutputSpec, RunRequest, Stdin};

use crate::failure::Failure;

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
                request: self.agreeing(parse_request(&read(path)?)?)?,
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
        request.stdin = self.stdin.as_deref().map(read).transpose()?.map(Stdin);
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
    let reader = &mut serde_json::Deserializer::from_slice(text);
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let field = error.path().to_string();
        wrong(&field, error.into_inner().to_string())
    })
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
        let path = std::path::absolute(from)
            .map_err(|error| wrong(&format!("inputs[{index}].from"), format!("{from:?}: {error}")))?;
        used.push(path.parent().unwrap_or(&path).to_owned());
        format!("host://{}", path.display())
    };
    Ok(InputSpec {
        from,
        to,
        mode,
        pin: false,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Failure::refused(ErrorBody::new(ErrorCode::InvalidRequest, message))
    })
}

fn wrong(field: &str, message: String) -> Failure {
    Failure::refused(ErrorBody::new(ErrorCode::InvalidRequest, message).in_field(field))
}
