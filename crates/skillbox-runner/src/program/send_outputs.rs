//! Lists the workspace, and sends the files that the executor requests.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use skillbox_runner::{EntryKind, ToExecutor, ToRunner, WalkOptions, open_file, walk_tree, write_message};

use super::connection::Connection;
use super::sent_skills::SentSkills;

/// The maximum number of listed entries: far more inodes than any profile allows in a workspace.
const MAX_ENTRIES: u64 = 1_000_000;
/// The number of encoded bytes after which a part of the list is sent.
const BATCH_BYTES: usize = 32 << 10;

/// Lists the workspace, then sends the requested files. No process is alive that could change them.
pub fn send_outputs(connection: &mut Connection, workspace: &OwnedFd, skills: &SentSkills) -> io::Result<()> {
    let options = WalkOptions {
        root: workspace.as_fd(),
        excluded_names: &[],
        is_excluded: &|path, stat| skills.is_unchanged(path, stat),
        max_entries: MAX_ENTRIES,
    };
    let mut files = Vec::new();
    let mut batch = Vec::new();
    let skipped = walk_tree::<io::Error>(options, &mut |entry| {
        let is_file = matches!(entry.kind, EntryKind::File { .. });
        files.push(is_file.then(|| entry.path.clone()));
        write_message(&mut batch, &ToExecutor::WorkspaceEntry(entry.clone()))?;
        if batch.len() >= BATCH_BYTES {
            connection.send_frames(&batch)?;
            batch.clear();
        }
        Ok(())
    })?;
    write_message(&mut batch, &ToExecutor::EndOfList { skipped })?;
    connection.send_frames(&batch)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match connection.next_message()? {
            ToRunner::RequestFiles(list) => {
                for index in list {
                    let path = files.get(index as usize).and_then(Option::as_ref);
                    send_file(connection, workspace, index, path.map(Vec::as_slice), &mut buffer)?;
                }
            }
            ToRunner::EndOfRequests => return connection.send(&ToExecutor::FilesSent),
            // The command has ended already.
            ToRunner::Kill | ToRunner::StdinEnd => {}
            other => return Err(io::Error::other(format!("{other:?} instead of a request for files"))),
        }
    }
}

fn send_file(
    connection: &mut Connection,
    workspace: &OwnedFd,
    index: u32,
    path: Option<&[u8]>,
    buffer: &mut [u8],
) -> io::Result<()> {
    let opened = path
        .ok_or(Errno::NOENT)
        .and_then(|path| open_file(workspace.as_fd(), path));
    let file = match opened {
        Ok(file) => File::from(file),
        Err(error) => {
            let errno = error.raw_os_error();
            return connection.send(&ToExecutor::FileFailed { index, errno });
        }
    };
    let size = file.metadata()?.len();
    connection.send(&ToExecutor::File { index, size })?;
    let mut remaining = size;
    let mut file = file.take(size);
    while remaining > 0 {
        let count = file.read(buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        connection.send_data(&buffer[..count])?;
        remaining -= count as u64;
    }
    Ok(())
}
