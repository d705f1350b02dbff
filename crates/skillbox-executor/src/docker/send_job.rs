//! Sends a job to its container: the staged skills and inputs, then the command.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::io::Errno;
use skillbox_runner::{
    Entry, EntryKind, Job, LandlockConfinement, SkillTree, ToRunner, WalkOptions, exclude_nothing, open_file, walk_tree,
};

use skillbox_sandbox::SkillDirAccess;

use super::DockerError;
use super::runner_connection::RunnerConnection;
use super::skills_root::SKILLS_ROOT_VARIABLE;
use crate::StagedJob;
use crate::job::JobSpec;
use crate::layout::{self, SKILL_LINKS};
use crate::workspace::Workspace;

/// A runner that receives nothing for this long counts as lost.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of sent entries, more than any profile allows in a workspace.
const MAX_ENTRIES: u64 = 1_000_000;

/// Sends everything, and requests the start of the command.
pub(super) fn send_job(
    connection: &mut RunnerConnection,
    spec: &JobSpec,
    job: &StagedJob,
    workspace: &Workspace,
    confinement: LandlockConfinement,
    skills_root: Option<String>,
) -> Result<(), DockerError> {
    let names_outside_digest: Vec<String> = SKILL_LINKS.iter().map(|(name, _)| (*name).to_owned()).collect();
    // Only the skill that runs may change. Those beside it are read-only.
    let is_writable = |index: usize| index == 0 && job.skill_dir == SkillDirAccess::Cow;
    let skills = job
        .skills
        .iter()
        .enumerate()
        .map(|(index, (name, snapshot))| SkillTree {
            path: layout::skill_directory(name).into_bytes(),
            digest: snapshot.visible_digest(),
            names_outside_digest: names_outside_digest.clone(),
            is_writable: is_writable(index),
        });
    let bytes = |text: &std::ffi::OsString| text.as_bytes().to_vec();
    let skills_root = skills_root
        .filter(|_| !job.env.contains_key(OsStr::new(SKILLS_ROOT_VARIABLE)))
        .map(|value| (SKILLS_ROOT_VARIABLE.as_bytes().to_vec(), value.into_bytes()));
    let message = Job {
        skills: skills.collect(),
        argv: job.argv.iter().map(bytes).collect(),
        env: job
            .env
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .chain(skills_root)
            .collect(),
        cwd: job.cwd.clone().into_bytes(),
        has_stdin: !spec.stdin.is_empty(),
        max_file_bytes: spec.limits.file.bytes(),
        cpu_limit_ms: u64::try_from(spec.limits.cpu.as_millis()).unwrap_or(u64::MAX),
        max_workspace_bytes: spec.limits.workspace.bytes(),
        max_workspace_inodes: spec.limits.workspace_inodes,
        confinement,
    };
    connection.queue_message(&ToRunner::Job(Box::new(message)))?;
    let as_they_are = SentModes::AsTheyAre;
    send_tree(
        connection,
        workspace.root(),
        "",
        &[layout::SKILLS.as_bytes()],
        as_they_are,
    )?;
    let directory = |path: String, mode: u32| {
        ToRunner::Entry(Entry {
            path: path.into_bytes(),
            kind: EntryKind::Directory { mode },
        })
    };
    connection.queue_message(&directory(layout::SKILLS.to_owned(), 0o555))?;
    for (index, (name, snapshot)) in job.skills.iter().enumerate() {
        let path = layout::skill_directory(name);
        let (mode, modes_below) = if is_writable(index) {
            (0o755, as_they_are)
        } else {
            (0o555, SentModes::ReadOnly)
        };
        connection.queue_message(&directory(path.clone(), mode))?;
        send_tree(connection, snapshot.root(), &path, &[], modes_below)?;
    }
    connection.queue_message(&ToRunner::Start)
}

/// Why a tree could not be sent.
enum SendTreeError {
    Read(Errno),
    Send(DockerError),
}

impl From<Errno> for SendTreeError {
    fn from(errno: Errno) -> Self {
        Self::Read(errno)
    }
}

impl From<DockerError> for SendTreeError {
    fn from(error: DockerError) -> Self {
        Self::Send(error)
    }
}

/// The modes of sent files and directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentModes {
    AsTheyAre,
    ReadOnly,
}

/// Sends the tree below `root`, to the directory `below` of the workspace. The entries in `skip` are not sent.
fn send_tree(
    connection: &mut RunnerConnection,
    root: BorrowedFd<'_>,
    below: &str,
    skip: &[&[u8]],
    sent_modes: SentModes,
) -> Result<(), DockerError> {
    let failed = |errno: Errno| DockerError::io("read a file for the container")(errno.into());
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let root = rustix::fs::openat(root, ".", flags, rustix::fs::Mode::empty()).map_err(failed)?;
    let walk_options = WalkOptions {
        root: root.as_fd(),
        excluded_names: skip,
        is_excluded: &exclude_nothing,
        max_entries: MAX_ENTRIES,
    };
    let mut sent_paths: Vec<Vec<u8>> = Vec::new();
    let sent = walk_tree::<SendTreeError>(walk_options, &mut |entry| {
        sent_paths.push(entry.path.clone());
        let (source, kind) = match &entry.kind {
            EntryKind::HardLink { index } => {
                // Two hard links to one file become two files. A script sees the difference only in the link count.
                let source = sent_paths.get(*index as usize).cloned().unwrap_or_default();
                let size = file_size(root.as_fd(), &source)?;
                (source, EntryKind::File { mode: 0o644, size })
            }
            EntryKind::File { mode, size } if sent_modes == SentModes::ReadOnly => {
                let mode = mode & 0o555;
                (entry.path.clone(), EntryKind::File { mode, size: *size })
            }
            EntryKind::Directory { .. } if sent_modes == SentModes::ReadOnly => {
                (entry.path.clone(), EntryKind::Directory { mode: 0o555 })
            }
            kind => (entry.path.clone(), kind.clone()),
        };
        let path = if below.is_empty() {
            entry.path.clone()
        } else {
            [below.as_bytes(), b"/", &entry.path].concat()
        };
        let size = match kind {
            EntryKind::File { size, .. } => Some(size),
            _ => None,
        };
        connection.queue_message(&ToRunner::Entry(Entry { path, kind }))?;
        if let Some(size) = size {
            send_file(connection, root.as_fd(), &source, size)?;
        }
        match connection.flush_below_limit(STALL_TIMEOUT)? {
            true => Ok(()),
            false => Err(container_lost().into()),
        }
    });
    match sent {
        Ok(0) => Ok(()),
        Ok(skipped) => Err(DockerError::InputsTooLarge {
            reason: format!("{skipped} entries cannot be sent"),
        }),
        Err(SendTreeError::Read(errno)) => Err(failed(errno)),
        Err(SendTreeError::Send(error)) => Err(error),
    }
}

fn container_lost() -> DockerError {
    DockerError::ContainerLost {
        during: "while its inputs were sent",
        cause: "it stopped receiving".to_owned(),
    }
}

fn file_size(root: BorrowedFd<'_>, path: &[u8]) -> Result<u64, Errno> {
    let stat = rustix::fs::fstat(open_file(root, path)?)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

fn send_file(
    connection: &mut RunnerConnection,
    root: BorrowedFd<'_>,
    path: &[u8],
    size: u64,
) -> Result<(), SendTreeError> {
    let file = File::from(open_file(root, path)?);
    let mut rest = file.take(size);
    let mut buffer = vec![0; 64 << 10];
    let mut remaining = size;
    while remaining > 0 {
        let count = rest.read(&mut buffer).map_err(DockerError::io("read an input"))?;
        if count == 0 {
            return Err(DockerError::io("read an input")(std::io::ErrorKind::UnexpectedEof.into()).into());
        }
        remaining -= count as u64;
        connection.queue_data(&buffer[..count])?;
        if !connection.flush_below_limit(STALL_TIMEOUT)? {
            return Err(container_lost().into());
        }
    }
    Ok(())
}
