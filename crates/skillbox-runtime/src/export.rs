//! Writes collected files below a directory that the caller named.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, accessat};
use skillbox_executor::job::RequestError;
use skillbox_executor::workspace::{Backing, CollectedFile, InputSource, OpenInput, Outputs, Workspace, stage_inputs};
use skillbox_model::{ErrorCode, InputMode, with_causes};

/// The target directory, which exists and is writable. It is treated as a workspace into which files are staged, so
/// symbolic links that it already contains are not followed.
#[derive(Debug)]
pub(crate) struct ExportDirectory {
    path: PathBuf,
    workspace: Workspace,
}

impl ExportDirectory {
    /// Creates the directory if needed and opens it, before the run starts.
    pub fn open(path: &Path) -> Result<Self, RequestError> {
        let root = open_writable(path).map_err(|error| {
            let message = format!("cannot write to {}: {error}", path.display());
            RequestError::new("out_dir", ErrorCode::Storage, message).with_hint("name a writable directory")
        })?;
        Ok(Self {
            path: path.to_owned(),
            workspace: Workspace::new(root.into(), None, Backing::Disk),
        })
    }

    /// Writes every open file under its own name, and returns a message for each that could not be written. A failure
    /// is not an error: the run is over, and its report must still reach the caller.
    pub fn write(&self, outputs: &mut Outputs) -> Vec<String> {
        let failures = outputs.files.iter_mut().filter_map(|collected| {
            let reason = self.write_file(collected).err()?;
            Some(format!(
                "{} is not written to {}: {reason}",
                collected.name,
                self.path.display()
            ))
        });
        failures.collect()
    }

    fn write_file(&self, collected: &mut CollectedFile) -> Result<(), String> {
        let Some(mut file) = collected.file.take() else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
        let input = OpenInput {
            from: collected.name.to_string(),
            to: collected.name.clone(),
            mode: InputMode::Copy,
            source: InputSource::File(file),
        };
        match stage_inputs(&self.workspace, vec![input]) {
            Ok(_) => Ok(()),
            Err(error) => Err(with_causes(&error.source)),
        }
    }
}

fn open_writable(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path)?;
    let root = File::open(path)?;
    accessat(&root, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(root)
}
