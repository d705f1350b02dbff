//! Opening the sources of inputs: the last look at a reference before its bytes are staged.

use std::fs::File;
use std::io::Cursor;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use skillbox_artifacts::{ArtifactRef, Scope, Store};
use skillbox_executor::job::{InputRef, JobInput, JobSpec, RequestError};
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{InputSource, ReadyInput, Workspace, open_in_workspace};
use skillbox_model::{ErrorCode, InputMode, RelPath};

use crate::session::Pins;
use crate::{HostDirectories, RunError};

/// Freezes the skill of a name, for the field that named it.
type Freeze<'a> = dyn Fn(&str, &str) -> Result<Arc<Snapshot>, RunError> + 'a;

/// Where sources may come from in this run.
pub(crate) struct Sources<'a> {
    pub artifacts: &'a Store,
    pub scope: &'a Scope,
    pub pins: &'a mut Pins,
    pub host: &'a HostDirectories,
    pub workspace: &'a Workspace,
    /// Freezes another skill, so that what is read from it is what its digest says.
    pub freeze: &'a Freeze<'a>,
}

impl Sources<'_> {
    /// Opens every input of a job, or names the first that cannot be had.
    pub(crate) fn open_all(&mut self, spec: &JobSpec) -> Result<Vec<ReadyInput>, RunError> {
        let mut ready = Vec::new();
        for (index, input) in spec.inputs.iter().enumerate() {
            ready.push(self.open(input, &format!("inputs[{index}].from"))?);
        }
        Ok(ready)
    }

    fn open(&mut self, input: &JobInput, field: &str) -> Result<ReadyInput, RunError> {
        let mut from = input.text.clone();
        let source = match &input.from {
            InputRef::Artifact(text) => {
                let (exact, source) = self.artifact(text, input, field)?;
                from = exact;
                source
            }
            InputRef::Host(path) => self.host.open_input(path, field)?,
            InputRef::Workspace(path) => {
                open_in_workspace(self.workspace, path).map_err(|error| missing(field, &input.text, error))?
            }
            InputRef::Skill { skill, path } => {
                let snapshot = (self.freeze)(skill, field)?;
                in_snapshot(&snapshot, path.as_ref()).map_err(|error| missing(field, &input.text, error))?
            }
            InputRef::Data(data) => InputSource::Reader(Box::new(Cursor::new(data.bytes.clone()))),
        };
        Ok(ReadyInput {
            from,
            to: input.to.clone(),
            mode: input.mode,
            source,
        })
    }

    fn artifact(&mut self, text: &str, input: &JobInput, field: &str) -> Result<(String, InputSource), RunError> {
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
            self.pins.keep(artifact.name.as_str(), &input.to, artifact.version);
        }
        let source = match input.mode {
            InputMode::Copy => InputSource::Reader(Box::new(self.artifacts.open(&artifact)?)),
            InputMode::Link => InputSource::File(self.artifacts.open_checked_file(&artifact)?),
        };
        Ok((artifact.reference(), source))
    }
}

fn in_snapshot(snapshot: &Snapshot, path: Option<&RelPath>) -> Result<InputSource, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Some(path) = path else {
        let root = rustix::fs::openat(snapshot.root(), ".", flags | OFlags::DIRECTORY, Mode::empty())?;
        return Ok(InputSource::Directory(root));
    };
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
    match snapshot.open_directory(path) {
        Ok(directory) => Ok(InputSource::Directory(directory)),
        // Not a directory: then a file, or the error that opening it as one gives.
        Err(_) => Ok(InputSource::File(snapshot.open_file(path).map_err(errno)?)),
    }
}

fn missing(field: &str, text: &str, error: Errno) -> RunError {
    let message = match error {
        Errno::NOENT => format!("{text} does not exist"),
        Errno::LOOP | Errno::XDEV => format!("{text} is a link, or behind one, and is not followed"),
        Errno::INVAL => format!("{text} is neither a file nor a directory"),
        error => format!("{text} cannot be opened: {error}"),
    };
    RequestError::new(field, ErrorCode::InputMissing, message).into()
}

/// Opens a path of the host beneath an allowed directory: links that stay inside are followed, others are not.
pub(crate) fn open_host(directory: &OwnedFd, below: &Path) -> Result<InputSource, Errno> {
    let below = if below.as_os_str().is_empty() {
        Path::new(".")
    } else {
        below
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(directory, below, flags, Mode::empty(), resolve)?;
    let stat = rustix::fs::fstat(&opened)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(InputSource::File(File::from(opened))),
        FileType::Directory => Ok(InputSource::Directory(opened)),
        _ => Err(Errno::INVAL),
    }
}

pub(crate) fn host_missing(field: &str, text: &str, error: Errno) -> RunError {
    if error == Errno::XDEV {
        let message = format!("{text} leads out of the allowed directories");
        return RequestError::new(field, ErrorCode::HostNotAllowed, message).into();
    }
    missing(field, text, error)
}
