//! Opens the sources of a run's inputs, just before they are staged.

use std::io::Cursor;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use skillbox_artifacts::{ArtifactRef, Scope, Store};
use skillbox_executor::job::{InputRef, JobInput, JobSpec, RequestError};
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{InputSource, OpenInput, Workspace, open_in_workspace};
use skillbox_model::{ErrorCode, InputMode, RelPath};

use crate::request_checks::input_source_error;
use crate::session::Pins;
use crate::{HostDirectories, RunError};

/// Freezes the named skill; the second argument is the request field that names it.
type FreezeSkill<'a> = dyn Fn(&str, &str) -> Result<Arc<Snapshot>, RunError> + 'a;

/// The sources that inputs of one run may come from.
pub(crate) struct InputSources<'a> {
    pub artifacts: &'a Store,
    pub scope: &'a Scope,
    pub pins: &'a mut Pins,
    pub host: &'a HostDirectories,
    pub workspace: &'a Workspace,
    /// Freezes the skill that an input comes from, so that the bytes that are read match its digest.
    pub freeze: &'a FreezeSkill<'a>,
}

impl InputSources<'_> {
    /// Opens every input of a job. An error names the first input that cannot be opened.
    pub(crate) fn open_all(&mut self, spec: &JobSpec) -> Result<Vec<OpenInput>, RunError> {
        let mut opened = Vec::new();
        for (index, input) in spec.inputs.iter().enumerate() {
            opened.push(self.open(input, &format!("inputs[{index}].from"))?);
        }
        Ok(opened)
    }

    fn open(&mut self, input: &JobInput, field: &str) -> Result<OpenInput, RunError> {
        let missing = |error| RunError::from(input_source_error(field, &input.display_text, error));
        let mut from = input.display_text.clone();
        let source = match &input.from {
            InputRef::Artifact(text) => {
                let (exact_reference, source) = self.open_artifact(text, input, field)?;
                from = exact_reference;
                source
            }
            InputRef::Host(path) => self.host.open_input(path, field)?,
            InputRef::Workspace(path) => open_in_workspace(self.workspace, path).map_err(missing)?,
            InputRef::Skill { skill, path } => {
                let snapshot = (self.freeze)(skill, field)?;
                open_in_snapshot(&snapshot, path.as_ref()).map_err(missing)?
            }
            InputRef::Data(data) => InputSource::Reader(Box::new(Cursor::new(data.bytes.clone()))),
        };
        Ok(OpenInput {
            from,
            to: input.to.clone(),
            mode: input.mode,
            source,
        })
    }

    /// Resolves an artifact to one version and opens it; returns the reference with that version.
    fn open_artifact(&mut self, text: &str, input: &JobInput, field: &str) -> Result<(String, InputSource), RunError> {
        let mut reference =
            ArtifactRef::parse(text).map_err(|error| RequestError::invalid(field, error.to_string()))?;
        if input.pin && reference.version.is_none() {
            reference.version = self.pins.get(reference.name.as_str(), &input.to);
        }
        let artifact = self
            .artifacts
            .resolve(self.scope, &reference)
            .map_err(|error| match error.code() {
                ErrorCode::ArtifactMissing => {
                    RunError::Request(RequestError::new(field, ErrorCode::ArtifactMissing, error.to_string()))
                }
                _ => error.into(),
            })?;
        if input.pin {
            self.pins.pin(artifact.name.as_str(), &input.to, artifact.version);
        }
        let source = match input.mode {
            InputMode::Copy => InputSource::Reader(Box::new(self.artifacts.open(&artifact)?)),
            InputMode::Link => InputSource::File(self.artifacts.open_checked_file(&artifact)?),
        };
        Ok((artifact.reference(), source))
    }
}

fn open_in_snapshot(snapshot: &Snapshot, path: Option<&RelPath>) -> Result<InputSource, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Some(path) = path else {
        let root = rustix::fs::openat(snapshot.root(), ".", flags | OFlags::DIRECTORY, Mode::empty())?;
        return Ok(InputSource::Directory(root));
    };
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
    match snapshot.open_directory(path) {
        Ok(directory) => Ok(InputSource::Directory(directory)),
        // Not a directory, so it is opened as a file; that call also gives the error to report.
        Err(_) => Ok(InputSource::File(snapshot.open_file(path).map_err(errno)?)),
    }
}
