//! Taking in what the run needs, and checking it before anything runs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use skillbox_model::with_causes;
use skillbox_runner::{Frame, Frames, Job, TreeWriter, TreeWriteError, ToRunner, open_directory, tree_digest};

use super::line::Line;

/// Why nothing will run.
pub enum Failure {
    /// The executor is gone, or talks nonsense.
    Line(io::Error),
    /// What was sent cannot be used.
    Refused {
        /// Why not.
        reason: String,
        /// Whether there was no room for it.
        is_full: bool,
    },
}

/// Receives the job and its trees.
pub fn receive(line: &mut Line, workspace: &OwnedFd) -> Result<Job, Failure> {
    let ToRunner::Job(job) = line.next_message().map_err(Failure::Line)? else {
        return Err(refused("a job comes first"));
    };
    let root = workspace.try_clone().map_err(Failure::Line)?;
    // The file system of the workspace has its own limits.
    let mut place = TreeWriter::new(root, None, u64::MAX, u64::MAX);
    let mut failed: Option<Failure> = None;
    loop {
        let step = match line.next_frame().map_err(Failure::Line)? {
            Frame::Data(data) if failed.is_none() => place.data(&data),
            Frame::Data(_) | Frame::Output(..) => Ok(()),
            Frame::Message(bytes) => {
                match Frames::decode(&bytes).map_err(|error| Failure::Line(io::Error::other(error)))? {
                    ToRunner::Entry(entry) if failed.is_none() => place.entry(&entry),
                    ToRunner::Entry(_) => Ok(()),
                    ToRunner::Start => break,
                    other => return Err(refused(format!("{other:?} before the start"))),
                }
            }
        };
        // What follows is still read: the executor hears of the failure when it asks for the start.
        if let Err(error) = step {
            failed.get_or_insert_with(|| unplaced(&error));
        }
    }
    if failed.is_none() && place.expects_data() {
        failed = Some(refused("a file is not whole"));
    }
    if failed.is_none() {
        failed = place.finish().err().map(|error| unplaced(&error));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    check_digests(&job, workspace)?;
    Ok(*job)
}

fn check_digests(job: &Job, workspace: &OwnedFd) -> Result<(), Failure> {
    for skill in &job.skills {
        let shown = String::from_utf8_lossy(&skill.path);
        let skip: Vec<&[u8]> = skill.unhashed_names.iter().map(|name| name.as_bytes()).collect();
        let found = open_directory(workspace.as_fd(), &skill.path)
            .map_err(io::Error::from)
            .and_then(|root| tree_digest(root.as_fd(), &skip))
            .map_err(|error| refused(format!("{shown} cannot be read: {error}")))?;
        if found != skill.digest {
            return Err(refused(format!("{shown} is not what was hashed")));
        }
    }
    Ok(())
}

fn refused(reason: impl Into<String>) -> Failure {
    Failure::Refused {
        reason: reason.into(),
        is_full: false,
    }
}

fn unplaced(error: &TreeWriteError) -> Failure {
    let is_full = matches!(
        error,
        TreeWriteError::System {
            source: Errno::NOSPC | Errno::DQUOT | Errno::FBIG,
            ..
        }
    );
    Failure::Refused {
        reason: with_causes(error),
        is_full,
    }
}
