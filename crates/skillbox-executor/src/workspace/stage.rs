//! Stages inputs into the workspace without following links.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use skillbox_model::{InputMode, RelPath, StagedInput};

use super::file_content::FileContent;
use super::staging_limits::StagingLimits;
use super::{Workspace, WorkspaceError, nofollow};

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
    let (parent, name) = nofollow::open_parent(workspace.root(), path)?;
    let stat = nofollow::stat_child(parent.as_fd(), name)?;
    match nofollow::file_type(&stat) {
        FileType::Directory => Ok(InputSource::Directory(nofollow::open_child_directory(
            parent.as_fd(),
            name,
        )?)),
        FileType::RegularFile => Ok(InputSource::File(
            nofollow::open_child_file(parent.as_fd(), name)?.into(),
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
pub fn stage_inputs(
    workspace: &Workspace,
    inputs: Vec<OpenInput>,
    mut limits: StagingLimits<'_>,
) -> Result<StagedInputs, StageError> {
    let mut staged = StagedInputs::default();
    for (index, input) in inputs.into_iter().enumerate() {
        staged
            .stage_input(workspace, input, &mut limits)
            .map_err(|source| StageError { index, source })?;
    }
    Ok(staged)
}

impl StagedInputs {
    fn stage_input(
        &mut self,
        workspace: &Workspace,
        input: OpenInput,
        limits: &mut StagingLimits<'_>,
    ) -> Result<(), WorkspaceError> {
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
            (_, InputSource::File(file)) => copy_file(workspace, &to, FileContent::File(&file), limits)?,
            (_, InputSource::Reader(mut reader)) => {
                copy_file(workspace, &to, FileContent::Reader(&mut *reader), limits)?
            }
            (InputMode::Copy, InputSource::Directory(directory)) => {
                refuse_inside_source(workspace, directory.as_fd(), &to)?;
                let mut tree = TreeCopy {
                    workspace,
                    warnings: &mut self.warnings,
                    limits,
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
    if nofollow::file_type(&stat) != FileType::Directory {
        let duplicate = source.try_clone_to_owned().map_err(|error| {
            WorkspaceError::io("open the source of", to)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let file = File::from(duplicate);
        let content = FileContent::File(&file);
        return copy_file_at(workspace, parent.as_fd(), name, to, content, &mut StagingLimits::none()).map(drop);
    }
    let mut tree = TreeCopy {
        workspace,
        warnings: &mut Vec::new(),
        limits: &mut StagingLimits::none(),
        bytes: 0,
    };
    // A descriptor with `O_PATH` cannot be listed.
    let listed = nofollow::open_child_directory(source, b".").map_err(WorkspaceError::io("open the source of", to))?;
    tree.copy_directory(listed.as_fd(), parent.as_fd(), name, to, 0)
}

fn create_mount_point(workspace: &Workspace, to: &RelPath, kind: FileType) -> Result<(), WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, to);
    let (parent, name) = workspace.create_parent(to)?;
    match (kind, nofollow::stat_child(parent.as_fd(), name)) {
        (FileType::Directory, Ok(stat)) if nofollow::file_type(&stat) == FileType::Directory => return Ok(()),
        (_, Ok(stat)) if nofollow::file_type(&stat) == FileType::Directory => {
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

/// Refuses to copy a directory to a place inside itself, where the copy would be copied again. The directory may be one
/// of the workspace, or of the host above the workspace.
fn refuse_inside_source(workspace: &Workspace, source: BorrowedFd<'_>, to: &RelPath) -> Result<(), WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, to);
    let identity = |directory: BorrowedFd<'_>| rustix::fs::fstat(directory).map(|stat| (stat.st_dev, stat.st_ino));
    let wanted = identity(source).map_err(failed("inspect the source of"))?;
    let refuse_if_source = |directory: BorrowedFd<'_>| match identity(directory) {
        Ok(found) if found == wanted => Err(WorkspaceError::IntoItself { path: to.to_string() }),
        Ok(found) => Ok(found),
        Err(error) => Err(failed("inspect the parent of")(error)),
    };
    let mut above = refuse_if_source(workspace.root())?;
    let mut directory: Option<OwnedFd> = None;
    for _ in 0..MAX_DEPTH {
        let below = directory.as_ref().map_or(workspace.root(), AsFd::as_fd);
        // A server may not search the directories above its state directory; nobody gave it those as an input.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(parent) = rustix::fs::openat(below, "..", flags, Mode::empty()) else {
            break;
        };
        let found = refuse_if_source(parent.as_fd())?;
        if found == above {
            break;
        }
        above = found;
        directory = Some(parent);
    }
    let mut directory: Option<OwnedFd> = None;
    for part in to.components() {
        let parent = directory.as_ref().map_or(workspace.root(), AsFd::as_fd);
        // What does not exist, or is no directory, is not the source. Staging reports what is in the way.
        let Ok(child) = nofollow::open_child_directory(parent, part) else {
            break;
        };
        refuse_if_source(child.as_fd())?;
        directory = Some(child);
    }
    Ok(())
}

fn copy_file(
    workspace: &Workspace,
    to: &RelPath,
    content: FileContent<'_>,
    limits: &mut StagingLimits<'_>,
) -> Result<u64, WorkspaceError> {
    let (parent, name) = workspace.create_parent(to)?;
    copy_file_at(workspace, parent.as_fd(), name, to, content, limits)
}

/// Copies a file. An existing file or link is replaced, so that nothing is written through a link that a script
/// created.
fn copy_file_at(
    workspace: &Workspace,
    parent: BorrowedFd<'_>,
    name: &[u8],
    to: &RelPath,
    content: FileContent<'_>,
    limits: &mut StagingLimits<'_>,
) -> Result<u64, WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, to);
    let replaced = nofollow::stat_child(parent, name);
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => limits.return_bytes(replaced.map_or(0, |stat| freed_bytes(&stat))),
        Err(Errno::NOENT) => {}
        Err(error) => return Err(failed("replace")(error)),
    }
    limits.reserve_entry(to)?;
    let file = File::from(create_file(parent, name).map_err(failed("create"))?);
    let copied = content.copy_to(&file, to, limits);
    if copied.is_err() {
        // The space is free again for the script of the session.
        let _kept = rustix::fs::unlinkat(parent, name, AtFlags::empty());
    }
    let size = copied?;
    workspace
        .set_script_owner(parent, name)
        .map_err(failed("change the owner of"))?;
    Ok(size)
}

/// The bytes that the removal of an entry frees.
fn freed_bytes(stat: &rustix::fs::Stat) -> u64 {
    match stat.st_nlink {
        1 => u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
        _ => 0,
    }
}

fn create_file(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644))
}

struct TreeCopy<'a, 'b> {
    workspace: &'a Workspace,
    warnings: &'a mut Vec<String>,
    limits: &'a mut StagingLimits<'b>,
    bytes: u64,
}

impl TreeCopy<'_, '_> {
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
        self.limits.reserve_entry(to)?;
        match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => self
                .workspace
                .set_script_owner(parent, name)
                .map_err(failed("change the owner of"))?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("create")(error)),
        }
        let target = nofollow::open_child_directory(parent, name).map_err(failed("open"))?;
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
        let stat = nofollow::stat_child(source, name).map_err(failed("inspect the source of"))?;
        match nofollow::file_type(&stat) {
            FileType::Directory => {
                let below = nofollow::open_child_directory(source, name).map_err(failed("open the source of"))?;
                self.copy_directory(below.as_fd(), target, name, &child, depth + 1)
            }
            FileType::RegularFile => {
                let open = nofollow::open_child_file(source, name).map_err(failed("open the source of"))?;
                let file = File::from(open);
                let content = FileContent::File(&file);
                self.bytes += copy_file_at(self.workspace, target, name, &child, content, self.limits)?;
                if stat.st_mode & 0o111 != 0 {
                    rustix::fs::chmodat(target, name, Mode::from_raw_mode(0o755), AtFlags::empty())
                        .map_err(failed("make executable"))?;
                }
                Ok(())
            }
            // A link is copied unchanged: inside the sandbox it cannot lead out of the sandbox.
            FileType::Symlink => {
                self.limits.reserve_entry(&child)?;
                // A session stages the same input again, and the link of the last time is replaced.
                match rustix::fs::unlinkat(target, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(failed("replace")(error)),
                }
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
