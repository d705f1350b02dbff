//! What is wrong with a request beyond its own words: names that the store would not take, inputs that lead too far.

use std::os::fd::AsFd;

use skillbox_artifacts::ArtifactName;
use skillbox_executor::job::{InputRef, JobSpec, RequestError};
use skillbox_executor::workspace::{InputSource, ReadyInput, WorkspaceError, find_live_file};
use skillbox_model::{ErrorCode, InputMode, RunRequest, with_causes};

/// A directory of the host that is shown as it is must have nothing that leads further.
pub(crate) fn refuse_live_links(spec: &JobSpec, ready: &[ReadyInput]) -> Result<(), RequestError> {
    for (index, (input, ready)) in spec.inputs.iter().zip(ready).enumerate() {
        let (InputRef::Host(_), InputMode::Link, InputSource::Directory(directory)) =
            (&input.from, ready.mode, &ready.source)
        else {
            continue;
        };
        if let Some(found) = find_live_file(directory.as_fd()) {
            let message = format!("{} cannot be linked: {found}", ready.from);
            return Err(RequestError::invalid(format!("inputs[{index}].from"), message)
                .with_hint("copy it, which leaves such files out, or link what is below it"));
        }
    }
    Ok(())
}

/// A prefix that makes no name would let the script run and its files be lost.
pub(crate) fn refuse_bad_prefix(request: &RunRequest, spec: &JobSpec) -> Result<(), RequestError> {
    let collecting = &spec.collecting;
    if !collecting.save {
        return Ok(());
    }
    let field = match request.artifact_prefix {
        Some(_) => "artifact_prefix",
        None => "outputs.name_template",
    };
    match ArtifactName::parse(format!("{}out/file", collecting.prefix)) {
        Ok(_) => Ok(()),
        Err(error) => Err(RequestError::new(field, ErrorCode::InvalidRequest, error.to_string())),
    }
}

/// An input that cannot be placed is the request's matter, not the state directory's: something that is not followed
/// stands in its place, it does not fit, or it cannot be read.
pub(crate) fn misplaced(index: usize, error: &WorkspaceError) -> RequestError {
    let (field, code, hint) = if error.is_obstacle() {
        ("to", ErrorCode::PathEscape, None)
    } else if error.is_full() {
        (
            "from",
            ErrorCode::LimitExceeded,
            Some("bring less, or link it, which takes no room"),
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
