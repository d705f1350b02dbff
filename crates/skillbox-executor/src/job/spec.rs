//! One job, ready to be staged.

use std::collections::BTreeMap;
use std::time::Duration;

use skillbox_model::{ErrorCode, InputMode, Limits, OutputSpec, RelPath, RunId, RunRequest, SkillName};

use super::variables::{self, Anchored};
use super::{InputRef, Invocation, OutputGlobs, RequestError, destination, environment};
use crate::workspace::layout;

/// What a profile allows a request to ask for.
#[derive(Clone, Debug)]
pub struct ProfileBounds {
    /// The limits of a run that asks for nothing.
    pub limits: Limits,
    /// The longest wall-clock time that a request may ask for.
    pub max_wall: Duration,
}

/// A request of which every text is parsed and every bound is checked.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The run.
    pub run_id: RunId,
    /// The skill.
    pub skill: SkillName,
    /// Skills mounted beside it.
    pub with_skills: Vec<SkillName>,
    /// What is started.
    pub invocation: Invocation,
    /// The working directory below the workspace; none is the workspace itself.
    pub cwd: Option<RelPath>,
    /// The variables of the request.
    pub env: BTreeMap<String, String>,
    /// What the command reads.
    pub stdin: Vec<u8>,
    /// What is placed in the workspace.
    pub inputs: Vec<JobInput>,
    /// What comes back.
    pub collecting: Collecting,
    /// The limits in force.
    pub limits: Limits,
}

/// One input, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInput {
    /// The reference as the caller wrote it.
    pub text: String,
    /// Where it comes from.
    pub from: InputRef,
    /// Where it goes.
    pub to: RelPath,
    /// How.
    pub mode: InputMode,
    /// Whether the session's first version is kept.
    pub pin: bool,
}

/// What becomes of files over the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Somebody asked for them: each is refused by name.
    Named,
    /// Nobody asked: they are only counted.
    Counted,
}

/// What comes back, and how.
#[derive(Clone, Debug)]
pub struct Collecting {
    /// Which files.
    pub globs: OutputGlobs,
    /// Whether text content comes with them.
    pub inline: bool,
    /// Whether binary content does.
    pub inline_binary: bool,
    /// Whether they become artifacts.
    pub save: bool,
    /// Whether the files stay open after collection, for whoever stores or writes them.
    pub keep_open: bool,
    /// Put before their names as artifacts.
    pub prefix: String,
    /// What becomes of files over the limits.
    pub excess: Excess,
    /// At most so many files.
    pub max_files: usize,
    /// Inline at most so much of one file.
    pub max_file_bytes: u64,
    /// At most so much of all files together.
    pub max_total_bytes: u64,
}

impl JobSpec {
    /// Parses a request within the bounds of its profile.
    pub fn parse(request: &RunRequest, run_id: RunId, bounds: &ProfileBounds) -> Result<Self, RequestError> {
        let skill = skill_name("skill", &request.skill)?;
        let mut with_skills = Vec::new();
        for (index, name) in request.with_skills.iter().enumerate() {
            let field = format!("with_skills[{index}]");
            let name = skill_name(&field, name)?;
            if name == skill || with_skills.contains(&name) {
                return Err(RequestError::invalid(
                    field,
                    format!("the skill {name} is mounted already"),
                ));
            }
            with_skills.push(name);
        }
        environment::check(&request.env)?;
        Ok(Self {
            invocation: Invocation::parse(request)?,
            cwd: cwd(request.cwd.as_deref(), &skill, &run_id)?,
            env: request.env.clone(),
            stdin: request.stdin.as_ref().map(|stdin| stdin.0.clone()).unwrap_or_default(),
            inputs: inputs(request, &run_id)?,
            collecting: collecting(request, &run_id)?,
            limits: limits(request, bounds)?,
            with_skills,
            skill,
            run_id,
        })
    }
}

impl JobSpec {
    /// A job without a skill, for trying a host.
    pub(crate) fn trial(bounds: ProfileBounds) -> Self {
        let fixed = "trial".to_owned();
        let (Ok(run_id), Ok(skill)) = (RunId::parse(fixed.clone()), SkillName::parse(fixed)) else {
            unreachable!("a plain word is an identifier")
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
            collecting: Collecting::nothing(),
            limits: bounds.limits,
        }
    }
}

impl Collecting {
    /// Whole files are wanted: those that were asked for, or all of `out/`.
    pub fn keep_files(&mut self) {
        self.keep_open = true;
        if self.globs.is_empty() {
            self.globs = OutputGlobs::everything_in("out");
        }
    }

    /// Nothing comes back.
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
            prefix: String::new(),
            excess: Excess::Counted,
            max_files: 0,
            max_file_bytes,
            max_total_bytes,
        }
    }
}

fn skill_name(field: &str, text: &str) -> Result<SkillName, RequestError> {
    SkillName::parse(text).map_err(|error| RequestError::new(field, ErrorCode::UnknownSkill, error.to_string()))
}

/// The default is the skill's root; a plain path is relative to it.
fn cwd(text: Option<&str>, skill: &SkillName, run_id: &RunId) -> Result<Option<RelPath>, RequestError> {
    let root = layout::skill_directory(skill);
    let place = match text.unwrap_or_default() {
        "" | "." | "./" => root,
        typed => match variables::anchor(typed, run_id) {
            Anchored::Below { directory, rest } => variables::join(&directory, rest.trim_end_matches('/')),
            Anchored::UnknownVariable(_) => {
                return Err(RequestError::invalid(
                    "cwd",
                    format!("{typed:?} starts with an unknown variable"),
                ));
            }
            Anchored::Plain(plain) => {
                let below = RelPath::parse_typed(plain).map_err(|error| RequestError::path("cwd", &error))?;
                format!("{root}/{below}")
            }
        },
    };
    if place.is_empty() {
        return Ok(None);
    }
    let path = RelPath::parse_typed(&place).map_err(|error| RequestError::path("cwd", &error))?;
    Ok(Some(path))
}

fn inputs(request: &RunRequest, run_id: &RunId) -> Result<Vec<JobInput>, RequestError> {
    let mut inputs = Vec::new();
    for (index, input) in request.inputs.iter().enumerate() {
        let from = InputRef::parse(&input.from, &format!("inputs[{index}].from"))?;
        if input.pin && !matches!(from, InputRef::Artifact(_)) {
            let message = "only an artifact:// input has versions to pin";
            return Err(RequestError::invalid(format!("inputs[{index}].pin"), message));
        }
        let to = destination::parse(input.to.as_deref(), &from, run_id, &format!("inputs[{index}].to"))?;
        inputs.push(JobInput {
            text: match &from {
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

/// The short form and the declared form are one; where both are given, both lists count.
fn collecting(request: &RunRequest, run_id: &RunId) -> Result<Collecting, RequestError> {
    let declared = request.outputs.clone().unwrap_or_default();
    for (field, value) in [
        ("outputs.max_files", declared.max_files),
        ("outputs.max_file_bytes", declared.max_file_bytes),
        ("outputs.max_total_bytes", declared.max_total_bytes),
    ] {
        if value == 0 {
            return Err(RequestError::invalid(field, "the limit must be at least 1"));
        }
    }
    if declared.max_files > MAX_FILES {
        let message = format!("{} files are more than the {MAX_FILES} of one run", declared.max_files);
        return Err(RequestError::new(
            "outputs.max_files",
            ErrorCode::LimitExceeded,
            message,
        ));
    }
    if request.output_files.is_empty() && declared.globs.is_empty() {
        let nothing = |field: &str, list: &str| {
            let message = format!("nothing to save: no glob in `{list}` says which files");
            Err(RequestError::invalid(field, message))
        };
        match (request.save_as_artifacts, declared.save) {
            (true, _) => return nothing("save_as_artifacts", "output_files"),
            (false, true) => return nothing("outputs.save", "outputs.globs"),
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
    Ok(Collecting {
        globs,
        inline: inline && !request.omit_inline_content,
        inline_binary: inline_binary && !request.omit_inline_content,
        save: save || request.save_as_artifacts,
        keep_open: save || request.save_as_artifacts,
        prefix: request.artifact_prefix.clone().or(name_template).unwrap_or_default(),
        excess: Excess::Named,
        max_files: usize::try_from(declared.max_files).unwrap_or(usize::MAX),
        max_file_bytes: declared.max_file_bytes,
        max_total_bytes: declared.max_total_bytes,
    })
}

/// Every collected file holds a descriptor until it is saved.
const MAX_FILES: u64 = 10_000;

fn limits(request: &RunRequest, bounds: &ProfileBounds) -> Result<Limits, RequestError> {
    let mut limits = bounds.limits.clone();
    if let Some(seconds) = request.timeout {
        if seconds > bounds.max_wall.as_secs_f64() {
            // Nobody wants to count three hundred digits.
            let shown = if seconds < 1e9 {
                seconds.to_string()
            } else {
                format!("{seconds:e}")
            };
            let message = format!(
                "{shown} s are more than the {} s that the profile allows",
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
