//! Sending a job into its container: skills and inputs as they lie on the host, then the command.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::io::Errno;
use skillbox_runner::{Confinement, Entry, EntryKind, Job, SkillTree, ToRunner, Walk, open_file, walk};

use super::DockerError;
use super::line::Line;
use crate::Placement;
use crate::job::JobSpec;
use crate::workspace::Workspace;
use crate::workspace::layout::{self, SKILL_LINKS};

/// A runner that takes nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than any workspace that a profile gives.
const MAX_ENTRIES: u64 = 1_000_000;

/// Sends everything and asks for the start.
pub(super) fn ship(
    line: &mut Line,
    spec: &JobSpec,
    placement: &Placement,
    workspace: &Workspace,
    confinement: Confinement,
) -> Result<(), DockerError> {
    let not_hashed: Vec<String> = SKILL_LINKS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let skills = placement.skills.iter().map(|(name, snapshot)| SkillTree {
        path: layout::skill_directory(name).into_bytes(),
        digest: snapshot.shown_digest(),
        not_hashed: not_hashed.clone(),
    });
    let bytes = |text: &std::ffi::OsString| text.as_bytes().to_vec();
    let job = Job {
        skills: skills.collect(),
        argv: placement.argv.iter().map(bytes).collect(),
        env: placement
            .env
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect(),
        cwd: placement.cwd.clone().into_bytes(),
        has_stdin: !spec.stdin.is_empty(),
        file_bytes: spec.limits.file.bytes(),
        cpu_ms: u64::try_from(spec.limits.cpu.as_millis()).unwrap_or(u64::MAX),
        confinement,
    };
    line.tell(&ToRunner::Job(Box::new(job)))?;
    send_tree(line, workspace.root(), "", &[layout::SKILLS.as_bytes()])?;
    let frozen = |path: String| {
        ToRunner::Entry(Entry {
            path: path.into_bytes(),
            kind: EntryKind::Directory { mode: 0o555 },
        })
    };
    line.tell(&frozen(layout::SKILLS.to_owned()))?;
    for (name, snapshot) in &placement.skills {
        let path = layout::skill_directory(name);
        line.tell(&frozen(path.clone()))?;
        send_tree(line, snapshot.root(), &path, &[])?;
    }
    line.tell(&ToRunner::Start)
}

/// Why a tree could not be sent.
enum Failure {
    Read(Errno),
    Send(DockerError),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Read(errno)
    }
}

impl From<DockerError> for Failure {
    fn from(error: DockerError) -> Self {
        Self::Send(error)
    }
}

fn send_tree(line: &mut Line, root: BorrowedFd<'_>, below: &str, skip: &[&[u8]]) -> Result<(), DockerError> {
    let failed = |errno: Errno| DockerError::io("read what goes into the container")(errno.into());
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let root = rustix::fs::openat(root, ".", flags, rustix::fs::Mode::empty()).map_err(failed)?;
    let how = Walk {
        root: root.as_fd(),
        skip,
        max_entries: MAX_ENTRIES,
    };
    // A read-only directory of a skill is a read-only directory inside.
    let is_frozen = !below.is_empty();
    let mut told: Vec<Vec<u8>> = Vec::new();
    let sent = walk::<Failure>(how, &mut |entry| {
        told.push(entry.path.clone());
        let (source, kind) = match &entry.kind {
            EntryKind::HardLink { index } => {
                // Two names of one file arrive as two files: nobody inside can tell the difference but by counting.
                let source = told.get(*index as usize).cloned().unwrap_or_default();
                let size = file_size(root.as_fd(), &source)?;
                (source, EntryKind::File { mode: 0o644, size })
            }
            EntryKind::Directory { .. } if is_frozen => (entry.path.clone(), EntryKind::Directory { mode: 0o555 }),
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
        line.tell(&ToRunner::Entry(Entry { path, kind }))?;
        if let Some(size) = size {
            send_file(line, root.as_fd(), &source, size)?;
        }
        match line.make_room(PATIENCE)? {
            true => Ok(()),
            false => Err(lost().into()),
        }
    });
    match sent {
        Ok(0) => Ok(()),
        Ok(left_out) => Err(DockerError::TooMuch {
            reason: format!("{left_out} entries cannot be sent"),
        }),
        Err(Failure::Read(errno)) => Err(failed(errno)),
        Err(Failure::Send(error)) => Err(error),
    }
}

fn lost() -> DockerError {
    DockerError::Lost {
        during: "while its inputs were sent",
        cause: "it takes nothing any more".to_owned(),
    }
}

fn file_size(root: BorrowedFd<'_>, path: &[u8]) -> Result<u64, Errno> {
    let stat = rustix::fs::fstat(open_file(root, path)?)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

fn send_file(line: &mut Line, root: BorrowedFd<'_>, path: &[u8], size: u64) -> Result<(), Failure> {
    let file = File::from(open_file(root, path)?);
    let mut rest = file.take(size);
    let mut buffer = vec![0; 64 << 10];
    let mut left = size;
    while left > 0 {
        let count = rest.read(&mut buffer).map_err(DockerError::io("read an input"))?;
        if count == 0 {
            return Err(DockerError::io("read an input")(std::io::ErrorKind::UnexpectedEof.into()).into());
        }
        left -= count as u64;
        line.data(&buffer[..count])?;
        if !line.make_room(PATIENCE)? {
            return Err(lost().into());
        }
    }
    Ok(())
}
