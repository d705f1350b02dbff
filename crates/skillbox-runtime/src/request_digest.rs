//! The digest of everything that determines the result of a request, so that an unchanged request need not run again.
//!
//! It covers the skills, the command, the content of the inputs, the environment, the profile and the limits. A source of
//! the host is read here and again when it is staged; a caller that needs certainty compares two digests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use skillbox_artifacts::{ArtifactRef, Scope};
use skillbox_executor::CancelToken;
use skillbox_executor::job::{InputRef, JobSpec, ProfileBounds, RequestError};
use skillbox_executor::workspace::InputSource;
use skillbox_model::{Digest, ErrorCode, ExecutorKind, InputMode, RunRequest};
use skillbox_repository::Catalog;
use skillbox_runner::tree_digest;
use skillbox_sandbox::Profile;

use crate::run_id::new_run_id;
use crate::{RunError, Runtime};

/// Changes whenever the hashed text changes its form.
const FORM: u32 = 1;
const READ_BUFFER_BYTES: usize = 64 << 10;

/// The digest of a request and of the skill that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDigest {
    /// The digest of everything that determines the result.
    pub key: Digest,
    /// The digest of the skill, which the report of a run with the same skill has too.
    pub skill: Digest,
}

/// Computes digests of requests. The profiles are hashed once.
#[derive(Debug)]
pub struct RequestDigests<'r> {
    runtime: &'r Runtime,
    profiles: BTreeMap<String, Digest>,
}

/// What is hashed, in this order.
#[derive(Serialize)]
struct HashedRequest<'a> {
    form: u32,
    /// Without inputs and standard input, which are hashed by content.
    request: &'a RunRequest,
    executor: ExecutorKind,
    profile: Digest,
    skills: Vec<Digest>,
    stdin: Digest,
    inputs: Vec<HashedInput>,
}

#[derive(Serialize)]
struct HashedInput {
    content: Digest,
    to: String,
    mode: InputMode,
}

impl Runtime {
    /// Checks a request without running it: its form, its limits, and whether its skills, profile and executor exist.
    pub fn check_request(&self, request: &RunRequest, catalog: &Catalog) -> Result<(), RunError> {
        self.find_executor(request.executor.unwrap_or(self.settings.default_executor))?;
        self.parse_request(request, catalog).map(drop)
    }

    pub(crate) fn parse_request(&self, request: &RunRequest, catalog: &Catalog) -> Result<JobSpec, RunError> {
        let profile = self.resolve_profile(request.profile.as_deref())?;
        let bounds = ProfileBounds {
            limits: profile.limits.default.clone(),
            max_wall: profile.limits.wall_max,
            caps: self.settings.request_caps,
        };
        let spec = JobSpec::parse(request, new_run_id(), &bounds)?;
        self.find_skill(catalog, spec.skill.as_str(), "skill")?;
        for (index, name) in spec.with_skills.iter().enumerate() {
            self.find_skill(catalog, name.as_str(), &format!("with_skills[{index}]"))?;
        }
        Ok(spec)
    }
}

impl<'r> RequestDigests<'r> {
    /// Hashes the profiles of the runtime, with the environment that they pass on.
    pub fn new(runtime: &'r Runtime) -> Self {
        let profiles = runtime.profiles.iter();
        Self {
            runtime,
            profiles: profiles
                .map(|profile| (profile.name.to_string(), profile_digest(runtime, profile)))
                .collect(),
        }
    }

    /// The digest of a request. Fails as the run itself would if a skill or an input cannot be read.
    pub fn digest(
        &self,
        request: &RunRequest,
        catalog: &Catalog,
        cancel: &CancelToken,
    ) -> Result<RequestDigest, RunError> {
        let runtime = self.runtime;
        let spec = runtime.parse_request(request, catalog)?;
        let profile = runtime.resolve_profile(request.profile.as_deref())?;
        let profile_digest = self.profiles.get(profile.name.as_str()).copied();
        let mut skills = vec![runtime.freeze(catalog, spec.skill.as_str(), "skill", cancel)?.digest()];
        for (index, name) in spec.with_skills.iter().enumerate() {
            let field = format!("with_skills[{index}]");
            skills.push(runtime.freeze(catalog, name.as_str(), &field, cancel)?.digest());
        }
        let skill = skills[0];
        let mut inputs = Vec::new();
        for (index, input) in spec.inputs.iter().enumerate() {
            inputs.push(HashedInput {
                content: self.input_digest(&input.from, catalog, cancel, &format!("inputs[{index}].from"))?,
                to: input.to.to_string(),
                mode: input.mode,
            });
        }
        let bare_request = RunRequest {
            inputs: Vec::new(),
            stdin: None,
            ..request.clone()
        };
        let hashed = HashedRequest {
            form: FORM,
            request: &bare_request,
            executor: request.executor.unwrap_or(runtime.settings.default_executor),
            profile: profile_digest.unwrap_or_else(|| self::profile_digest(runtime, profile)),
            skills,
            stdin: digest_of(&spec.stdin),
            inputs,
        };
        Ok(RequestDigest {
            key: digest_of(&to_json(&hashed)),
            skill,
        })
    }

    fn input_digest(
        &self,
        from: &InputRef,
        catalog: &Catalog,
        cancel: &CancelToken,
        field: &str,
    ) -> Result<Digest, RunError> {
        let runtime = self.runtime;
        match from {
            InputRef::Data(data) => Ok(digest_of(&data.bytes)),
            InputRef::Host(path) => {
                let source = runtime.settings.host_directories.open_input(path, field)?;
                source_digest(source, cancel).map_err(|error| {
                    let message = format!("{} cannot be read: {error}", path.display());
                    let code = match error.kind() {
                        io::ErrorKind::Interrupted => ErrorCode::Cancelled,
                        _ => ErrorCode::InputMissing,
                    };
                    RequestError::new(field, code, message).into()
                })
            }
            InputRef::Artifact(text) => {
                let reference =
                    ArtifactRef::parse(text).map_err(|error| RequestError::invalid(field, error.to_string()))?;
                Ok(runtime.artifacts.resolve(&Scope::User, &reference)?.sha256)
            }
            InputRef::Skill { skill, path } => {
                let snapshot = runtime.freeze(catalog, skill, field, cancel)?;
                let path = path.as_ref().map(ToString::to_string).unwrap_or_default();
                Ok(digest_of(format!("{}\0{path}", snapshot.digest()).as_bytes()))
            }
            InputRef::Workspace(_) => {
                let message = "a run without a session starts with an empty workspace, so nothing can be read from it";
                Err(RequestError::new(field, ErrorCode::InputMissing, message).into())
            }
        }
    }
}

/// The digest of a profile and of the variables of the host that it passes on.
fn profile_digest(runtime: &Runtime, profile: &Profile) -> Digest {
    let host = &runtime.settings.host_environment;
    let passed = profile.initial_environment(|name| host.get(name).cloned());
    let passed: Vec<_> = passed
        .iter()
        .map(|(name, value)| (name.as_encoded_bytes(), value.as_encoded_bytes()))
        .collect();
    digest_of(&to_json(&(profile, passed)))
}

fn source_digest(source: InputSource, cancel: &CancelToken) -> io::Result<Digest> {
    match source {
        InputSource::File(file) => {
            let is_executable = file.metadata()?.permissions().mode() & 0o100 != 0;
            let content = content_digest(file, cancel)?;
            Ok(digest_of(
                format!("{} {content}", if is_executable { 'x' } else { 'f' }).as_bytes(),
            ))
        }
        InputSource::Directory(directory) => Ok(Digest::from_sha256(tree_digest(directory.as_fd(), &[])?)),
        InputSource::Reader(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn content_digest(mut file: File, cancel: &CancelToken) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_sha256(hasher.finalize().into())),
            count => hasher.update(&buffer[..count]),
        }
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
}

fn digest_of(bytes: &[u8]) -> Digest {
    Digest::from_sha256(Sha256::digest(bytes).into())
}

/// The fields have a fixed order and every map is sorted, so equal values give equal bytes.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("maps have text keys: {error}"))
}
