//! Sending back what is in the workspace, as far as it is asked for.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use skillbox_runner::{EntryKind, ToExecutor, ToRunner, WalkOptions, open_file, walk_tree, write_message};

use super::line::Line;

/// Far above the inodes of any workspace that a profile gives.
const MAX_ENTRIES: u64 = 1_000_000;
/// So much of the list is written at once.
const BATCH: usize = 32 << 10;

/// Lists everything, then sends the files that are wanted. Nothing lives that could change them meanwhile.
pub fn send(line: &mut Line, workspace: &OwnedFd) -> io::Result<()> {
    let how = WalkOptions {
        root: workspace.as_fd(),
        skip: &[b"skills"],
        max_entries: MAX_ENTRIES,
    };
    let mut files = Vec::new();
    let mut batch = Vec::new();
    let left_out = walk_tree::<io::Error>(how, &mut |entry| {
        let is_file = matches!(entry.kind, EntryKind::File { .. });
        files.push(is_file.then(|| entry.path.clone()));
        write_message(&mut batch, &ToExecutor::WorkspaceEntry(entry.clone()))?;
        if batch.len() >= BATCH {
            line.raw(&batch)?;
            batch.clear();
        }
        Ok(())
    })?;
    write_message(&mut batch, &ToExecutor::EndOfList { left_out })?;
    line.raw(&batch)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match line.next_message()? {
            ToRunner::RequestFiles(list) => {
                for index in list {
                    let path = files.get(index as usize).and_then(Option::as_ref);
                    send_file(line, workspace, index, path.map(Vec::as_slice), &mut buffer)?;
                }
            }
            ToRunner::EndOfRequests => return line.tell(&ToExecutor::FilesSent),
            // An order to end what has ended.
            ToRunner::Kill | ToRunner::StdinEnd => {}
            other => return Err(io::Error::other(format!("{other:?} instead of a wish"))),
        }
    }
}

fn send_file(
    line: &mut Line,
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
            return line.tell(&ToExecutor::FileFailed { index, errno });
        }
    };
    let size = file.metadata()?.len();
    line.tell(&ToExecutor::File { index, size })?;
    let mut left = size;
    let mut file = file.take(size);
    while left > 0 {
        let count = file.read(buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.data(&buffer[..count])?;
        left -= count as u64;
    }
    Ok(())
}
