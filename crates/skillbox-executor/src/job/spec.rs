//! A parsed request, ready to be staged.

use std::collections::BTreeMap;
use std::time::Duration;

use skillbox_model::{ErrorCode, InputMode, Limits, OutputSpec, RelPath, RunId, RunRequest, SkillName};

use super::variables::{self, ResolvedPath};
use super::{InputRef, Invocation, OutputGlobs, RequestCaps, RequestError, destination, environment};
use crate::layout;

/// The bounds that a profile sets for requests.
#[derive(Clone, Debug)]
pub struct ProfileBounds {
    /// The default limits of a run.
    pub limits: Limits,
    /// The longest wall-clock time that a request may set.
    pub max_wall: Duration,
    /// The bounds that the host sets.
    pub caps: RequestCaps,
}

/// A parsed request, within the limits of its profile.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The id of the run.
    pub run_id: RunId,
    /// The skill that the run belongs to.
    pub skill: SkillName,
    /// Additional skills to mount.
    pub with_skills: Vec<SkillName>,
    /// The command.
    pub invocation: Invocation,
    /// The working directory below the workspace; none for the workspace itself.
    pub cwd: Option<RelPath>,
    /// The variables of the request.
    pub env: BTreeMap<String, String>,
    /// The standard input of the command.
    pub stdin: Vec<u8>,
    /// The inputs to stage.
    pub inputs: Vec<JobInput>,
    /// The outputs to collect.
    pub collection: CollectionSpec,
    /// The limits of the run.
    pub limits: Limits,
}

/// A parsed input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInput {
    /// The source as reports show it: the reference of the request, without the content of a `data:` URL.
    pub display_text: String,
    /// The source.
    pub from: InputRef,
    /// The destination below the workspace.
    pub to: RelPath,
    /// Copy or link.
    pub mode: InputMode,
    /// Whether the session keeps using the version that it used first.
    pub pin: bool,
}

/// How files beyond the maximum number of files are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcessFileReporting {
    /// Each of them is refused by name, because the request selects the files.
    ByName,
    /// They are only counted, because the request selects no files.
    CountOnly,
}

/// Which outputs are collected, and how.
#[derive(Clone, Debug)]
pub struct CollectionSpec {
    /// The files to collect.
    pub globs: OutputGlobs,
    /// Whether text content is part of the result.
    pub inline: bool,
    /// Whether binary content is part of the result.
    pub inline_binary: bool,
    /// Whether the files are saved as artifacts.
    pub save: bool,
    /// Whether the files stay open after collection, so that the caller can store or copy them.
    pub keep_open: bool,
    /// The prefix of the artifact names.
    pub artifact_prefix: String,
    /// How files beyond `max_files` are reported. Files beyond `max_total_bytes` are always refused by name.
    pub excess_files: ExcessFileReporting,
    /// The maximum number of files.
    pub max_files: usize,
    /// The maximum number of inlined bytes of one file.
    pub max_file_bytes: u64,
    /// The maximum number of inlined bytes of all files together.
    pub max_inline_bytes: u64,
    /// The maximum size of all files together.
    pub max_total_bytes: u64,
}

impl JobSpec {
    /// Parses a request within the bounds of its profile.
    pub fn parse(request: &RunRequest, run_id: RunId, bounds: &ProfileBounds) -> Result<Self, RequestError> {
        let skill = parse_skill_name("skill", &request.skill)?;
        let mut with_skills = Vec::new();
        for (index, name) in request.with_skills.iter().enumerate() {
            let field = format!("with_skills[{index}]");
            let name = parse_skill_name(&field, name)?;
            if name == skill || with_skills.contains(&name) {
                return Err(RequestError::invalid(
                    field,
                    format!("the skill {name} is already mounted"),
                ));
            }
            with_skills.push(name);
        }
        environment::check_variables(&request.env)?;
        Ok(Self {
            invocation: Invocation::parse(request)?,
            cwd: parse_cwd(request.cwd.as_deref(), &skill, &run_id)?,
            env: request.env.clone(),
            stdin: request.stdin.as_ref().map(|stdin| stdin.0.clone()).unwrap_or_default(),
            inputs: parse_inputs(request, &run_id, &bounds.caps)?,
            collection: parse_collection(request, &run_id, &bounds.caps)?,
            limits: parse_limits(request, bounds)?,
            with_skills,
            skill,
            run_id,
        })
    }
}

impl JobSpec {
    /// A job without a skill, for probing a profile on this host.
    pub(crate) fn for_probe(bounds: ProfileBounds) -> Self {
        let name = "probe".to_owned();
        let (Ok(run_id), Ok(skill)) = (RunId::parse(name.clone()), SkillName::parse(name)) else {
            unreachable!("`probe` is a valid identifier")
        };
        Self {
            run_id,
            skill,
            with_skills: Vec::new(),
            invocation: Invocation::Argv(Vec::new()),
            cwd: None,
            env: BTreeMap::new(),
            stdin: Vec::new(),
            inputs: Vec::new(),
            collection: CollectionSpec::nothing(),
            limits: bounds.limits,
        }
    }
}

impl CollectionSpec {
    /// Collects nothing.
    fn nothing() -> Self {
        let OutputSpec {
            max_file_bytes,
            max_total_bytes,
            ..
        } = OutputSpec::default();
        Self {
            globs: OutputGlobs::nothing(),
            inline: false,
            inline_binary: false,
            save: false,
            keep_open: false,
            artifact_prefix: String::new(),
            excess_files: ExcessFileReporting::CountOnly,
            max_files: 0,
            max_file_bytes,
            max_inline_bytes: 0,
            max_total_bytes,
        }
    }
}

fn parse_skill_name(field: &str, text: &str) -> Result<SkillName, RequestError> {
    SkillName::parse(text).map_err(|error| RequestError::new(field, ErrorCode::UnknownSkill, error.to_string()))
}

/// Parses the working directory. The default is the skill's root, and a plain path is relative to it.
fn parse_cwd(text: Option<&str>, skill: &SkillName, run_id: &RunId) -> Result<Option<RelPath>, RequestError> {
    let root = layout::skill_directory(skill);
    let path = match text.unwrap_or_default() {
        "" | "." | "./" => root,
        typed => match variables::resolve_prefix(typed, run_id) {
            ResolvedPath::Below { directory, rest } => variables::join(&directory, rest.trim_end_matches('/')),
            ResolvedPath::UnknownVariable(_) => {
                return Err(RequestError::invalid(
                    "cwd",
                    format!("{typed:?} starts with an unknown variable"),
                ));
            }
            ResolvedPath::Plain(plain) => {
                let below =
                    RelPath::parse_user_input(plain).map_err(|error| RequestError::invalid_path("cwd", &error))?;
                format!("{root}/{below}")
            }
        },
    };
    if path.is_empty() {
        return Ok(None);
    }
    let path = RelPath::parse_user_input(&path).map_err(|error| RequestError::invalid_path("cwd", &error))?;
    Ok(Some(path))
}

fn parse_inputs(request: &RunRequest, run_id: &RunId, caps: &RequestCaps) -> Result<Vec<JobInput>, RequestError> {
    caps.check_inputs(request.inputs.len())?;
    let mut inputs = Vec::new();
    for (index, input) in request.inputs.iter().enumerate() {
        let from = InputRef::parse(&input.from, &format!("inputs[{index}].from"))?;
        if input.pin && !matches!(from, InputRef::Artifact(_)) {
            let message = "only an artifact:// input has versions to pin";
            return Err(RequestError::invalid(format!("inputs[{index}].pin"), message));
        }
        let to = destination::parse(input.to.as_deref(), &from, run_id, &format!("inputs[{index}].to"))?;
        inputs.push(JobInput {
            display_text: match &from {
                InputRef::Data(data) => data.to_string(),
                _ => input.from.clone(),
            },
            from,
            to,
            mode: input.mode,
            pin: input.pin,
        });
    }
    destination::refuse_collisions(&inputs.iter().map(|input| &input.to).collect::<Vec<_>>())?;
    Ok(inputs)
}

/// Combines `output_files` and `outputs`. If a request contains both, the globs of both apply.
fn parse_collection(request: &RunRequest, run_id: &RunId, caps: &RequestCaps) -> Result<CollectionSpec, RequestError> {
    let declared = caps.limit_outputs(request.outputs.as_ref())?;
    if request.output_files.is_empty() && declared.globs.is_empty() {
        let nothing_to_save = |field: &str, list: &str| {
            let message = format!("nothing to save: `{list}` contains no glob");
            Err(RequestError::invalid(field, message))
        };
        match (request.save_as_artifacts, declared.save) {
            (true, _) => return nothing_to_save("save_as_artifacts", "output_files"),
            (false, true) => return nothing_to_save("outputs.save", "outputs.globs"),
            (false, false) => {}
        }
    }
    let lists = [
        ("output_files", request.output_files.as_slice()),
        ("outputs.globs", declared.globs.as_slice()),
    ];
    let globs = OutputGlobs::parse(&lists, run_id)?;
    let OutputSpec {
        inline,
        inline_binary,
        save,
        name_template,
        ..
    } = declared;
    Ok(CollectionSpec {
        globs,
        inline: inline && !request.omit_inline_content,
        inline_binary: inline_binary && !request.omit_inline_content,
        save: save || request.save_as_artifacts,
        keep_open: save || request.save_as_artifacts,
        artifact_prefix: request.artifact_prefix.clone().or(name_template).unwrap_or_default(),
        excess_files: ExcessFileReporting::ByName,
        max_files: usize::try_from(declared.max_files).unwrap_or(usize::MAX),
        max_file_bytes: declared.max_file_bytes,
        max_inline_bytes: caps.inline_bytes,
        max_total_bytes: declared.max_total_bytes,
    })
}

fn parse_limits(request: &RunRequest, bounds: &ProfileBounds) -> Result<Limits, RequestError> {
    let mut limits = bounds.limits.clone();
    if let Some(seconds) = request.timeout {
        if seconds > bounds.max_wall.as_secs_f64() {
            // Avoids a message with three hundred digits.
            let seconds_text = if seconds < 1e9 {
                seconds.to_string()
            } else {
                format!("{seconds:e}")
            };
            let message = format!(
                "{seconds_text} s exceeds the profile's maximum of {} s",
                bounds.max_wall.as_secs()
            );
            return Err(RequestError::new("timeout", ErrorCode::LimitExceeded, message));
        }
        let wall = Duration::try_from_secs_f64(seconds).ok().filter(|wall| !wall.is_zero());
        limits.wall = wall.ok_or_else(|| {
            RequestError::invalid("timeout", format!("{seconds} is not a positive number of seconds"))
        })?;
    }
    Ok(limits)
}
