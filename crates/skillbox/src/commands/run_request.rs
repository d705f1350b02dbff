//! Builds the request of `skillbox run` from a file and from options.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use skillbox_model::{ByteSize, ErrorBody, ErrorCode, RunRequest, Stdin};
use skillbox_runtime::find_invalid_field;

use super::run_input;
use crate::failure::Failure;

/// The maximum size of a request or of standard input, which are held in memory.
const MAX_INPUT_BYTES: u64 = 256 << 20;

/// The command, its inputs and its outputs.
#[derive(Args, Debug)]
pub struct RequestArgs {
    /// Name of the skill, or the path of its directory, which contains a `/`
    #[arg(required_unless_present = "request")]
    skill: Option<String>,
    /// One word: a shell command line; several words: a program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Mount the files of another skill read-only beside this one; repeatable
    #[arg(long, value_name = "NAME")]
    with_skill: Vec<String>,
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
    /// Copy a file or directory into the workspace: a path, or an artifact://, host://, workspace:// or skill:// URL. A
    /// backslash before `=` or `,` makes it part of a name. Long form: '{"from": …, "to": …, "mode": "link"}'; repeatable
    #[arg(long, value_name = "FROM[=TO][,link]")]
    input: Vec<String>,
    /// Collect the files that match, relative to the workspace; repeatable
    #[arg(long, value_name = "GLOB")]
    output: Vec<String>,
    /// Maximum number of files for --output and --out-dir [default: 100]
    #[arg(long, value_name = "N")]
    max_files: Option<u64>,
    /// Maximum bytes of all files for --output and --out-dir [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    max_total_bytes: Option<u64>,
    /// End the run after this time
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// Save the files of --output as artifacts, below this name: `--save reports` makes `reports/…`
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, default_missing_value = "")]
    save: Option<String>,
    /// Read the request as JSON from this file; - is standard input. Other options change single fields of it
    #[arg(long, value_name = "FILE")]
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
    /// The skill as named on the command line.
    pub fn skill(&self) -> Option<&str> {
        self.skill.as_deref()
    }

    /// Whether the command line says what to run.
    pub fn has_command(&self) -> bool {
        self.request.is_some() || self.script.is_some() || !self.command.is_empty()
    }

    /// Builds the request: the fields of the file, changed by the options. An option with one value replaces the value of
    /// the file, a repeatable one adds to it, and a command replaces the command.
    pub fn to_request(&self) -> Result<ParsedRequest, Failure> {
        let mut request = match &self.request {
            Some(path) => parse_request(&read_bytes(path, "request")?)?,
            None => RunRequest::default(),
        };
        self.set_skill(&mut request)?;
        self.set_invocation(&mut request);
        request.with_skills.extend_from_slice(&self.with_skill);
        if self.cwd.is_some() {
            request.cwd.clone_from(&self.cwd);
        }
        request.env.extend(parse_variables(&self.env)?);
        if let Some(path) = &self.stdin {
            request.stdin = Some(Stdin(read_bytes(path, "stdin")?));
        }
        let mut input_directories = Vec::new();
        for text in &self.input {
            let input = run_input::parse(text, request.inputs.len(), &mut input_directories)?;
            request.inputs.push(input);
        }
        request.timeout = self.timeout.or(request.timeout);
        self.set_outputs(&mut request);
        Ok(ParsedRequest {
            request,
            input_directories,
        })
    }

    /// Sets the skill. A name on the command line must be the one in the request; a path decides which skill it is.
    fn set_skill(&self, request: &mut RunRequest) -> Result<(), Failure> {
        match &self.skill {
            Some(skill) if self.request.is_some() && !is_path(skill) && *skill != request.skill => {
                let message = format!("the request names {:?}, the command line {skill:?}", request.skill);
                Err(Failure::invalid_field("skill", message))
            }
            Some(skill) => {
                request.skill.clone_from(skill);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn set_invocation(&self, request: &mut RunRequest) {
        if self.script.is_none() && self.command.is_empty() {
            return;
        }
        (request.command, request.script) = (None, None);
        (request.argv, request.args) = (Vec::new(), Vec::new());
        match (&self.script, self.command.as_slice()) {
            (Some(script), args) => {
                request.script = Some(script.clone());
                request.args = args.to_vec();
            }
            (None, [line]) => request.command = Some(line.clone()),
            (None, argv) => request.argv = argv.to_vec(),
        }
    }

    fn set_outputs(&self, request: &mut RunRequest) {
        let limits = [self.max_files, self.max_total_bytes];
        if self.output.is_empty() && self.save.is_none() && limits == [None, None] {
            return;
        }
        let outputs = request.outputs.get_or_insert_default();
        outputs.globs.extend_from_slice(&self.output);
        outputs.max_files = self.max_files.unwrap_or(outputs.max_files);
        outputs.max_total_bytes = self.max_total_bytes.unwrap_or(outputs.max_total_bytes);
        if let Some(prefix) = &self.save {
            outputs.save = true;
            if !prefix.is_empty() {
                // The prefix is a directory of names: `reports` and `reports/` mean the same.
                outputs.name_template = Some(format!("{}/", prefix.trim_end_matches('/')));
                request.artifact_prefix = None;
            }
        }
    }
}

/// Whether the argument for a skill is the path of its directory.
pub fn is_path(skill: &str) -> bool {
    skill.contains('/') || skill == "." || skill == ".."
}

/// Parses a request from JSON; an error names the field.
pub fn parse_request(text: &[u8]) -> Result<RunRequest, Failure> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let request = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let body = ErrorBody::new(ErrorCode::InvalidRequest, error.inner().to_string());
        Failure::from_body(match find_invalid_field(&error) {
            Some(field) => body.with_field(field),
            None => ErrorBody {
                hint: Some("a request is one JSON object; `skillbox tools --json` describes its fields".to_owned()),
                ..body
            },
        })
    })?;
    reader.end().map_err(|error| {
        let message = format!("unexpected text after the request: {error}");
        Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message))
    })?;
    Ok(request)
}

/// Parses `NAME=VALUE` pairs.
pub fn parse_variables(pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Failure::invalid_field(
                &format!("env[{index}]"),
                format!("{pair:?} is not of the form NAME=VALUE"),
            )
        })?;
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables)
}

fn read_bytes(path: &Path, field: &str) -> Result<Vec<u8>, Failure> {
    let invalid = |message| Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message).with_field(field));
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
