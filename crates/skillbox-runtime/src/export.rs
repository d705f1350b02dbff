//! Writes collected files below a directory that the caller named.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, accessat, statat};
use rustix::io::Errno;
use skillbox_executor::job::{OutputGlobs, RequestError};
use skillbox_executor::workspace::{
    Backing, CollectedFile, InputSource, OpenInput, Outputs, StagingLimits, Workspace, stage_inputs,
};
use skillbox_model::{ErrorCode, InputMode, RelPath, with_causes};

/// Where collected files are written, besides the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportTarget {
    /// The directory, which is created if needed.
    pub directory: PathBuf,
    /// What happens to files that exist already.
    pub existing_files: ExistingFiles,
}

/// What happens to files of the target directory that have the name of a collected file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFiles {
    /// They stay, and the collected file is not written.
    Keep,
    /// They are replaced.
    Replace,
}

/// The target directory, which exists and is writable. It is treated as a workspace into which files are staged, so
/// symbolic links that it already contains are not followed.
#[derive(Debug)]
pub(crate) struct ExportDirectory {
    path: PathBuf,
    root: File,
    workspace: Workspace,
    existing_files: ExistingFiles,
}

impl ExportDirectory {
    /// Creates the directory if needed and opens it, before the run starts.
    pub fn open(target: &ExportTarget) -> Result<Self, RequestError> {
        let path = &target.directory;
        let opened = open_writable(path).and_then(|root| Ok((root.try_clone()?, root)));
        let (root, workspace_root) = opened.map_err(|error| {
            let message = format!("cannot write to {}: {error}", path.display());
            RequestError::new("out_dir", ErrorCode::Storage, message).with_hint("name a writable directory")
        })?;
        Ok(Self {
            path: path.to_owned(),
            root,
            workspace: Workspace::new(workspace_root.into(), None, Backing::Disk),
            existing_files: target.existing_files,
        })
    }

    /// Writes every open file under its own name, and returns a message for each that could not be written. A failure
    /// is not an error: the run is over, and its report must still reach the caller.
    ///
    /// The script chose the names. A file whose path starts with a dot configures programs (`.bashrc`, `.git/hooks`,
    /// `.claude/skills`), so it is written only if one of the `globs` names exactly that path.
    pub fn write(&self, outputs: &mut Outputs, globs: &OutputGlobs) -> Vec<String> {
        let failures = outputs.files.iter_mut().filter_map(|collected| {
            let reason = self.write_file(collected, globs).err()?;
            Some(format!(
                "{} is not written to {}: {reason}",
                collected.name,
                self.path.display()
            ))
        });
        failures.collect()
    }

    fn write_file(&self, collected: &mut CollectedFile, globs: &OutputGlobs) -> Result<(), String> {
        let Some(mut file) = collected.file.take() else {
            return Ok(());
        };
        if collected.name.as_bytes().starts_with(b".") && !globs.names_exactly(&collected.name) {
            return Err("its name starts with a dot; name it with --output, without a wildcard".to_owned());
        }
        self.check_existing(&collected.name)?;
        file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
        let input = OpenInput {
            from: collected.name.to_string(),
            to: collected.name.clone(),
            mode: InputMode::Copy,
            source: InputSource::File(file),
        };
        match stage_inputs(&self.workspace, vec![input], StagingLimits::none()) {
            Ok(_) => Ok(()),
            Err(error) => Err(with_causes(&error.source)),
        }
    }
}

impl ExportDirectory {
    fn check_existing(&self, name: &RelPath) -> Result<(), String> {
        match (
            self.existing_files,
            statat(&self.root, name.as_path(), AtFlags::SYMLINK_NOFOLLOW),
        ) {
            (ExistingFiles::Replace, _) | (_, Err(Errno::NOENT)) => Ok(()),
            (ExistingFiles::Keep, Ok(_)) => Err("the file exists already; use --force to replace it".to_owned()),
            // The write reports what is wrong, such as a link in the path.
            (ExistingFiles::Keep, Err(_)) => Ok(()),
        }
    }
}

fn open_writable(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path)?;
    let root = File::open(path)?;
    accessat(&root, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(root)
}
