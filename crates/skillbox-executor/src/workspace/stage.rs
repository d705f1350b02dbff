//! Stages inputs into the workspace without following links.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use skillbox_model::{InputMode, RelPath, StagedInput};

use super::{Workspace, WorkspaceError, beneath};

/// The deepest directory tree that is copied.
const MAX_DEPTH: usize = 64;

/// An input whose source is open.
pub struct OpenInput {
    /// The source as the report shows it.
    pub from: String,
    /// The destination below the workspace.
    pub to: RelPath,
    /// Copy or link.
    pub mode: InputMode,
    /// The source.
    pub source: InputSource,
}

/// The open source of an input.
pub enum InputSource {
    /// A regular file.
    File(File),
    /// A directory, copied with everything below it except special files.
    Directory(OwnedFd),
    /// Content without a file, such as an artifact or a `data:` URL.
    Reader(Box<dyn Read + Send>),
}

/// The staged inputs.
#[derive(Debug, Default)]
pub struct StagedInputs {
    /// The report on each input.
    pub inputs: Vec<StagedInput>,
    /// Sources that the sandbox mounts read-only, instead of copies.
    pub links: Vec<StagedLink>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

/// A source to mount read-only.
#[derive(Debug)]
pub struct StagedLink {
    /// The open source.
    pub source: OwnedFd,
    /// The mount point below the workspace.
    pub to: RelPath,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// Opens a file or directory of the workspace as a source. Links are not followed.
pub fn open_in_workspace(workspace: &Workspace, path: &RelPath) -> rustix::io::Result<InputSource> {
    let (parent, name) = beneath::open_parent(workspace.root(), path)?;
    let stat = beneath::stat_child(parent.as_fd(), name)?;
    match beneath::file_type(&stat) {
        FileType::Directory => Ok(InputSource::Directory(beneath::open_child_directory(
            parent.as_fd(),
            name,
        )?)),
        FileType::RegularFile => Ok(InputSource::File(
            beneath::open_child_file(parent.as_fd(), name)?.into(),
        )),
        FileType::Symlink => Err(Errno::LOOP),
        _ => Err(Errno::INVAL),
    }
}

/// Why an input could not be staged.
#[derive(Debug, thiserror::Error)]
#[error("cannot stage input {index}")]
pub struct StageError {
    /// The index of the input, from 0.
    pub index: usize,
    /// The cause.
    pub source: WorkspaceError,
}

/// Stages all inputs, in the order of the request.
pub fn stage_inputs(workspace: &Workspace, inputs: Vec<OpenInput>) -> Result<StagedInputs, StageError> {
    let mut staged = StagedInputs::default();
    for (index, input) in inputs.into_iter().enumerate() {
        staged
            .stage_input(workspace, input)
            .map_err(|source| StageError { index, source })?;
    }
    Ok(staged)
}

impl StagedInputs {
    fn stage_input(&mut self, workspace: &Workspace, input: OpenInput) -> Result<(), WorkspaceError> {
        let OpenInput { from, to, mode, source } = input;
        let size_bytes = match (mode, source) {
            (InputMode::Link, InputSource::File(file)) => {
                let size = file.metadata().map(|meta| meta.len()).unwrap_or(0);
                create_mount_point(workspace, &to, FileType::RegularFile)?;
                self.links.push(StagedLink {
                    source: file.into(),
                    to: to.clone(),
                    is_directory: false,
                });
                size
            }
            (InputMode::Link, InputSource::Directory(directory)) => {
                create_mount_point(workspace, &to, FileType::Directory)?;
                self.links.push(StagedLink {
                    source: directory,
                    to: to.clone(),
                    is_directory: true,
                });
                0
            }
            (_, InputSource::File(mut file)) => copy_file(workspace, &to, &mut file)?,
            (_, InputSource::Reader(mut reader)) => copy_file(workspace, &to, &mut reader)?,
            (InputMode::Copy, InputSource::Directory(directory)) => {
                let mut tree = TreeCopy {
                    workspace,
                    warnings: &mut self.warnings,
                    bytes: 0,
                };
                let (parent, name) = workspace.create_parent(&to)?;
                tree.copy_directory(directory.as_fd(), parent.as_fd(), name, &to, 0)?;
                tree.bytes
            }
        };
        self.inputs.push(StagedInput {
            from,
            to: to.to_string(),
            size_bytes,
        });
        Ok(())
    }
}

/// Copies a file, or a directory with everything below it except special files.
pub(crate) fn copy_tree(workspace: &Workspace, source: BorrowedFd<'_>, to: &RelPath) -> Result<(), WorkspaceError> {
    let stat = rustix::fs::fstat(source).map_err(WorkspaceError::io("inspect the source of", to))?;
    let (parent, name) = workspace.create_parent(to)?;
    if beneath::file_type(&stat) != FileType::Directory {
        let duplicate = source.try_clone_to_owned().map_err(|error| {
            WorkspaceError::io("open the source of", to)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        return copy_file_at(workspace, parent.as_fd(), name, to, &mut File::from(duplicate)).map(drop);
    }
    let mut tree = TreeCopy {
        workspace,
        warnings: &mut Vec::new(),
        bytes: 0,
    };
    // A descriptor with `O_PATH` cannot be listed.
    let listed = beneath::open_child_directory(source, b".").map_err(WorkspaceError::io("open the source of", to))?;
    tree.copy_directory(listed.as_fd(), parent.as_fd(), name, to, 0)
}

fn create_mount_point(workspace: &Workspace, to: &RelPath, kind: FileType) -> Result<(), WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, to);
    let (parent, name) = workspace.create_parent(to)?;
    match (kind, beneath::stat_child(parent.as_fd(), name)) {
        (FileType::Directory, Ok(stat)) if beneath::file_type(&stat) == FileType::Directory => return Ok(()),
        (_, Ok(stat)) if beneath::file_type(&stat) == FileType::Directory => {
            return Err(failed("replace the directory")(Errno::ISDIR));
        }
        (_, Ok(_)) => rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(failed("replace"))?,
        (_, Err(Errno::NOENT)) => {}
        (_, Err(error)) => return Err(failed("inspect")(error)),
    }
    if kind == FileType::Directory {
        rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)).map_err(failed("create"))?;
    } else {
        create_file(parent.as_fd(), name).map_err(failed("create"))?;
    }
    workspace
        .set_script_owner(parent.as_fd(), name)
        .map_err(failed("change the owner of"))
}

fn copy_file(workspace: &Workspace, to: &RelPath, source: &mut dyn Read) -> Result<u64, WorkspaceError> {
    let (parent, name) = workspace.create_parent(to)?;
    copy_file_at(workspace, parent.as_fd(), name, to, source)
}

/// Copies a file. An existing file or link is replaced, so that nothing is written through a link that a script
/// created.
fn copy_file_at(
    workspace: &Workspace,
    parent: BorrowedFd<'_>,
    name: &[u8],
    to: &RelPath,
    source: &mut dyn Read,
) -> Result<u64, WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, to);
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(failed("replace")(error)),
    }
    let mut file = File::from(create_file(parent, name).map_err(failed("create"))?);
    let size = std::io::copy(source, &mut file).map_err(|error| match Errno::from_io_error(&error) {
        Some(errno) => failed("write")(errno),
        // Errors of the written file have an errno, so this error comes from the source.
        None => WorkspaceError::Input {
            path: to.to_string(),
            source: error,
        },
    })?;
    workspace
        .set_script_owner(parent, name)
        .map_err(failed("change the owner of"))?;
    Ok(size)
}

fn create_file(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644))
}

struct TreeCopy<'a> {
    workspace: &'a Workspace,
    warnings: &'a mut Vec<String>,
    bytes: u64,
}

impl TreeCopy<'_> {
    fn copy_directory(
        &mut self,
        source: BorrowedFd<'_>,
        parent: BorrowedFd<'_>,
        name: &[u8],
        to: &RelPath,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let failed = |action| WorkspaceError::io(action, to);
        if depth > MAX_DEPTH {
            return Err(failed("copy a tree of this depth to")(Errno::NAMETOOLONG));
        }
        match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => self
                .workspace
                .set_script_owner(parent, name)
                .map_err(failed("change the owner of"))?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("create")(error)),
        }
        let target = beneath::open_child_directory(parent, name).map_err(failed("open"))?;
        let entries = rustix::fs::Dir::read_from(source).map_err(failed("list the source of"))?;
        for entry in entries {
            let entry = entry.map_err(failed("list the source of"))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.copy_entry(source, target.as_fd(), name, to, depth)?;
        }
        Ok(())
    }

    fn copy_entry(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &[u8],
        to: &RelPath,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let child = to
            .join(&RelPath::parse(name).map_err(|_| WorkspaceError::io("name an entry below", to)(Errno::INVAL))?)
            .map_err(|_| WorkspaceError::io("name an entry below", to)(Errno::NAMETOOLONG))?;
        let failed = |action| WorkspaceError::io(action, &child);
        let stat = beneath::stat_child(source, name).map_err(failed("inspect the source of"))?;
        match beneath::file_type(&stat) {
            FileType::Directory => {
                let below = beneath::open_child_directory(source, name).map_err(failed("open the source of"))?;
                self.copy_directory(below.as_fd(), target, name, &child, depth + 1)
            }
            FileType::RegularFile => {
                let open = beneath::open_child_file(source, name).map_err(failed("open the source of"))?;
                self.bytes += copy_file_at(self.workspace, target, name, &child, &mut File::from(open))?;
                if stat.st_mode & 0o111 != 0 {
                    rustix::fs::chmodat(target, name, Mode::from_raw_mode(0o755), AtFlags::empty())
                        .map_err(failed("make executable"))?;
                }
                Ok(())
            }
            // A link is copied unchanged: inside the sandbox it cannot lead out of the sandbox.
            FileType::Symlink => {
                let link = rustix::fs::readlinkat(source, name, Vec::new()).map_err(failed("read the link"))?;
                rustix::fs::symlinkat(&link, target, name).map_err(failed("create the link"))?;
                self.workspace
                    .set_script_owner(target, name)
                    .map_err(failed("change the owner of"))
            }
            other => {
                let description = match other {
                    FileType::Fifo => "a FIFO",
                    FileType::Socket => "a socket",
                    FileType::CharacterDevice | FileType::BlockDevice => "a device",
                    _ => "a special file",
                };
                self.warnings.push(format!("{child}: {description} is not copied"));
                Ok(())
            }
        }
    }
}
