//! Checks of a request that need the artifact name rules, the opened inputs or the workspace, and their errors.

use std::os::fd::AsFd;

use rustix::io::Errno;
use skillbox_artifacts::ArtifactName;
use skillbox_executor::job::{InputRef, JobSpec, RequestError};
use skillbox_executor::workspace::{InputSource, OpenInput, WorkspaceError, find_ipc_risk};
use skillbox_model::{ErrorCode, InputMode, RunRequest, with_causes};

/// Refuses to link a directory of the host that contains sockets or FIFOs: the script could communicate with processes of
/// the host through them.
pub(crate) fn refuse_links_to_sockets(spec: &JobSpec, opened: &[OpenInput]) -> Result<(), RequestError> {
    for (index, (input, opened)) in spec.inputs.iter().zip(opened).enumerate() {
        let (InputRef::Host(_), InputMode::Link, InputSource::Directory(directory)) =
            (&input.from, opened.mode, &opened.source)
        else {
            continue;
        };
        if let Some(found) = find_ipc_risk(directory.as_fd()) {
            let message = format!("{} cannot be linked: {found}", opened.from);
            return Err(RequestError::invalid(format!("inputs[{index}].from"), message)
                .with_hint("copy it, which omits such files, or link one of its subdirectories"));
        }
    }
    Ok(())
}

/// Refuses an artifact prefix that cannot be part of an artifact name. Without this check, the script would run and its
/// files could not be saved.
pub(crate) fn check_artifact_prefix(request: &RunRequest, spec: &JobSpec) -> Result<(), RequestError> {
    if !spec.collection.save {
        return Ok(());
    }
    let field = match request.artifact_prefix {
        Some(_) => "artifact_prefix",
        None => "outputs.name_template",
    };
    match ArtifactName::parse(format!("{}out/file", spec.collection.artifact_prefix)) {
        Ok(_) => Ok(()),
        Err(error) => Err(RequestError::new(field, ErrorCode::InvalidRequest, error.to_string())),
    }
}

/// The error for an input whose source cannot be opened.
pub(crate) fn input_source_error(field: &str, text: &str, error: Errno) -> RequestError {
    let message = match error {
        Errno::NOENT => format!("{text} does not exist"),
        Errno::LOOP | Errno::XDEV => format!("{text} is a link, or behind one, and is not followed"),
        Errno::INVAL => format!("{text} is neither a file nor a directory"),
        error => format!("{text} cannot be opened: {error}"),
    };
    RequestError::new(field, ErrorCode::InputMissing, message)
}

/// The error for an input that cannot be staged. The cause is the request, not the state directory: a link is in the way,
/// the input does not fit, or it cannot be read.
pub(crate) fn input_staging_error(index: usize, error: &WorkspaceError) -> RequestError {
    let (field, code, hint) = if matches!(error, WorkspaceError::Cancelled) {
        ("from", ErrorCode::Cancelled, None)
    } else if matches!(error, WorkspaceError::IntoItself { .. }) {
        (
            "to",
            ErrorCode::InvalidRequest,
            Some("choose a destination outside the source"),
        )
    } else if matches!(error, WorkspaceError::TimedOut) {
        (
            "from",
            ErrorCode::LimitExceeded,
            Some("stage less, link it, or set a longer timeout"),
        )
    } else if error.is_obstructed() {
        ("to", ErrorCode::PathEscape, None)
    } else if error.is_full() {
        (
            "from",
            ErrorCode::LimitExceeded,
            Some("stage fewer files, or link them, which uses no space"),
        )
    } else {
        (
            "from",
            ErrorCode::Storage,
            Some("check that skillbox may read all of it"),
        )
    };
    let refusal = RequestError::new(format!("inputs[{index}].{field}"), code, with_causes(error));
    match hint {
        Some(hint) => refusal.with_hint(hint),
        None => refusal,
    }
}
