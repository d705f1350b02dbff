//! Writing collected files below a directory that the caller named.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::Path;

use skillbox_executor::workspace::{Backing, InputSource, Outputs, ReadyInput, Workspace, stage_inputs};
use skillbox_model::InputMode;

use crate::RunError;

/// Writes every open file under its own name. The directory is filled as a workspace is: no link that stands
/// there already is written through.
pub(crate) fn write_out(directory: &Path, outputs: &mut Outputs) -> Result<(), RunError> {
    fs::create_dir_all(directory).map_err(RunError::Collect)?;
    let root = File::open(directory).map_err(RunError::Collect)?;
    let target = Workspace::new(root.into(), None, Backing::Disk);
    let mut files = Vec::new();
    for collected in &mut outputs.files {
        let Some(mut file) = collected.file.take() else {
            continue;
        };
        file.seek(SeekFrom::Start(0)).map_err(RunError::Collect)?;
        files.push(ReadyInput {
            from: collected.name.to_string(),
            to: collected.name.clone(),
            mode: InputMode::Copy,
            source: InputSource::File(file),
        });
    }
    stage_inputs(&target, files).map_err(|error| error.source)?;
    Ok(())
}
