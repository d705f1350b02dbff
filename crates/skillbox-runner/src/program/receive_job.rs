//! Receives the job and its files, and checks the digests of the skills.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use skillbox_model::with_causes;
use skillbox_runner::{Frame, FrameDecoder, Job, ToRunner, TreeWriteError, TreeWriter, open_directory, tree_digest};

use super::connection::Connection;

/// Why a job could not be received.
pub enum ReceiveError {
    /// The connection failed, or the executor sent an invalid frame.
    Connection(io::Error),
    /// The job cannot be run.
    Refused {
        /// The reason.
        reason: String,
        /// Whether the workspace has no space for the files.
        is_workspace_full: bool,
    },
}

/// Receives the job and its files.
pub fn receive_job(connection: &mut Connection, workspace: &OwnedFd) -> Result<Job, ReceiveError> {
    let ToRunner::Job(job) = connection.next_message().map_err(ReceiveError::Connection)? else {
        return Err(refused("the first message is not a job"));
    };
    let root = workspace.try_clone().map_err(ReceiveError::Connection)?;
    // Unlimited: the file system of the workspace has its own limits.
    let mut writer = TreeWriter::new(root, None, u64::MAX, u64::MAX);
    let mut failed: Option<ReceiveError> = None;
    loop {
        let written = match connection.next_frame().map_err(ReceiveError::Connection)? {
            Frame::Data(data) if failed.is_none() => writer.append_data(&data),
            Frame::Data(_) | Frame::Output(..) => Ok(()),
            Frame::Message(bytes) => {
                match FrameDecoder::decode_message(&bytes)
                    .map_err(|error| ReceiveError::Connection(io::Error::other(error)))?
                {
                    ToRunner::Entry(entry) if failed.is_none() => writer.write_entry(&entry),
                    ToRunner::Entry(_) => Ok(()),
                    ToRunner::Start => break,
                    other => return Err(refused(format!("{other:?} before the start"))),
                }
            }
        };
        // Continues to read after a failure, because the executor reads the refusal only after it has sent `Start`.
        if let Err(error) = written {
            failed.get_or_insert_with(|| write_failure(&error));
        }
    }
    if failed.is_none() && writer.expects_data() {
        failed = Some(refused("a file is incomplete"));
    }
    if failed.is_none() {
        failed = writer.finish().err().map(|error| write_failure(&error));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    check_digests(&job, workspace)?;
    Ok(*job)
}

fn check_digests(job: &Job, workspace: &OwnedFd) -> Result<(), ReceiveError> {
    for skill in &job.skills {
        let shown = String::from_utf8_lossy(&skill.path);
        let skip: Vec<&[u8]> = skill.names_outside_digest.iter().map(|name| name.as_bytes()).collect();
        let found = open_directory(workspace.as_fd(), &skill.path)
            .map_err(io::Error::from)
            .and_then(|root| tree_digest(root.as_fd(), &skip))
            .map_err(|error| refused(format!("{shown} cannot be read: {error}")))?;
        if found != skill.digest {
            return Err(refused(format!("{shown} does not have the promised digest")));
        }
    }
    Ok(())
}

fn refused(reason: impl Into<String>) -> ReceiveError {
    ReceiveError::Refused {
        reason: reason.into(),
        is_workspace_full: false,
    }
}

fn write_failure(error: &TreeWriteError) -> ReceiveError {
    let is_workspace_full = matches!(
        error,
        TreeWriteError::System {
            source: Errno::NOSPC | Errno::DQUOT | Errno::FBIG,
            ..
        }
    );
    ReceiveError::Refused {
        reason: with_causes(error),
        is_workspace_full,
    }
}
