//! `skillbox session get`: reads a file of a session's workspace, such as one that a tool result shows in part.

use std::path::Path;

use skillbox_model::{ErrorCode, ExitCode, RelPath, SessionId};
use skillbox_runtime::Runtime;

use super::copy_out::copy_out;
use crate::failure::Failure;

/// The scheme of references to files of a workspace.
const WORKSPACE_SCHEME: &str = "workspace://";

pub fn run(runtime: &Runtime, id: &SessionId, path: &str, to: Option<&Path>) -> Result<u8, Failure> {
    let path = path.strip_prefix(WORKSPACE_SCHEME).unwrap_or(path);
    let path = RelPath::parse(path).map_err(|error| Failure::from_error(ErrorCode::PathEscape, &error))?;
    let file = runtime.open_workspace_file(id, &path);
    let mut file = file.map_err(|error| Failure::from_body(error.body()))?;
    copy_out(&mut file, to)?;
    Ok(ExitCode::OK)
}
