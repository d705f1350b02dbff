//! Writing collected files below a directory that the caller named.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, accessat};
use skillbox_executor::job::RequestError;
use skillbox_executor::workspace::{Backing, Collected, InputSource, Outputs, ReadyInput, Workspace, stage_inputs};
use skillbox_model::{ErrorCode, InputMode, with_causes};

/// The directory, which is there and can be written to. It is filled as a workspace is: no link that stands there
/// already is written through.
#[derive(Debug)]
pub(crate) struct Export {
    path: PathBuf,
    target: Workspace,
}

impl Export {
    /// Makes and opens the directory, before anything runs.
    pub fn open(path: &Path) -> Result<Self, RequestError> {
        let root = open_writable(path).map_err(|error| {
            let message = format!("cannot write to {}: {error}", path.display());
            RequestError::new("out_dir", ErrorCode::Storage, message)
                .with_hint("name a directory that can be written to")
        })?;
        Ok(Self {
            path: path.to_owned(),
            target: Workspace::new(root.into(), None, Backing::Disk),
        })
    }

    /// Writes every open file under its own name, and tells which could not be written. The run is over by then, and
    /// its report is worth more than a disk's complaint.
    pub fn write(&self, outputs: &mut Outputs) -> Vec<String> {
        let failed = outputs.files.iter_mut().filter_map(|collected| {
            let why = self.write_one(collected).err()?;
            Some(format!(
                "{} is not written to {}: {why}",
                collected.name,
                self.path.display()
            ))
        });
        failed.collect()
    }

    fn write_one(&self, collected: &mut Collected) -> Result<(), String> {
        let Some(mut file) = collected.file.take() else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
        let ready = ReadyInput {
            from: collected.name.to_string(),
            to: collected.name.clone(),
            mode: InputMode::Copy,
            source: InputSource::File(file),
        };
        match stage_inputs(&self.target, vec![ready]) {
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
