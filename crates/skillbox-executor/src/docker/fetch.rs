//! Copies files from a container into the host's side of its workspace.
//!
//! The runner lists the workspace, and sends only the requested files. For other listed entries, this module creates a
//! sparse file, link or FIFO with the same name. The subsequent collection of outputs therefore finds, refuses and
//! counts the same entries as in a local workspace.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::AtFlags;
use rustix::io::Errno;
use skillbox_model::{Limits, RelPath};
use skillbox_runner::{Entry, EntryKind, ToExecutor, ToRunner, TreeWriter};

use super::DockerError;
use super::configuration::MAX_SKILL_INODES;
use super::runner_connection::{ConnectionEvent, RunnerConnection};
use super::supervise::unexpected_message;
use crate::job::CollectionSpec;
use crate::workspace::{FileQuota, Workspace, WorkspaceError, remove_tree};

/// A runner that sends nothing for this long counts as lost.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of files requested in one message.
const REQUESTS_PER_MESSAGE: usize = 1024;
/// The directory that receives the files of a session before they replace the old ones.
const INCOMING_DIRECTORY: &[u8] = b".skillbox-incoming";

/// The files to copy from the container.
#[derive(Clone, Copy, Debug)]
pub enum FilesToFetch<'a> {
    /// The files that the collection selects: the workspace is removed after the run.
    Matching(&'a CollectionSpec),
    /// All files: the workspace belongs to a session.
    All,
}

/// The entries of a workspace.
struct Listing {
    entries: Vec<(RelPath, EntryKind)>,
    /// The index of each entry in the runner's list.
    indices: Vec<u32>,
    /// The number of entries that are not in the list.
    skipped: u64,
}

/// Copies the selected files. Returns warnings.
pub(super) fn fetch(
    connection: &mut RunnerConnection,
    workspace: &Workspace,
    files_to_fetch: FilesToFetch<'_>,
    limits: &Limits,
) -> Result<Vec<String>, DockerError> {
    let listing = receive_listing(connection, limits)?;
    let mut warnings = match files_to_fetch {
        FilesToFetch::Matching(spec) => fetch_matching(connection, workspace, &listing, spec)?,
        FilesToFetch::All => fetch_all(connection, workspace, &listing, limits)?,
    };
    if listing.skipped > 0 {
        warnings.push(format!(
            "{} entries of the workspace could not be listed",
            listing.skipped
        ));
    }
    Ok(warnings)
}

fn receive_listing(connection: &mut RunnerConnection, limits: &Limits) -> Result<Listing, DockerError> {
    let mut listing = Listing {
        entries: Vec::new(),
        indices: Vec::new(),
        skipped: 0,
    };
    let mut index: u32 = 0;
    loop {
        match next_message(connection)? {
            ToExecutor::WorkspaceEntry(Entry { path, kind }) => {
                // The workspace and the skills cannot contain more entries than their inode limits, so the runner is
                // misbehaving.
                if u64::from(index) > limits.workspace_inodes.saturating_add(MAX_SKILL_INODES) {
                    return Err(DockerError::JobRefused {
                        reason: "it lists more entries than the workspace can hold".to_owned(),
                    });
                }
                match RelPath::parse(&path) {
                    Ok(path) if path.components().next() != Some(INCOMING_DIRECTORY) => {
                        listing.entries.push((path, kind));
                        listing.indices.push(index);
                    }
                    _ => listing.skipped += 1,
                }
                index += 1;
            }
            ToExecutor::EndOfList { skipped } => {
                listing.skipped += skipped;
                return Ok(listing);
            }
            other => return Err(unexpected_message(&other)),
        }
    }
}

fn next_message(connection: &mut RunnerConnection) -> Result<ToExecutor, DockerError> {
    loop {
        match connection.next_event(Instant::now() + STALL_TIMEOUT, None)? {
            ConnectionEvent::Message(message) => return Ok(message),
            ConnectionEvent::Data(_) | ConnectionEvent::Output(..) => {}
            ConnectionEvent::Timeout | ConnectionEvent::Cancelled => return Err(container_lost("it stopped sending")),
            ConnectionEvent::Closed => return Err(container_lost("the connection closed")),
        }
    }
}

fn container_lost(cause: &str) -> DockerError {
    DockerError::ContainerLost {
        during: "while its files were fetched",
        cause: cause.to_owned(),
    }
}

/// Recreates the directories that the globs search, and fetches the matching files.
fn fetch_matching(
    connection: &mut RunnerConnection,
    workspace: &Workspace,
    listing: &Listing,
    spec: &CollectionSpec,
) -> Result<Vec<String>, DockerError> {
    remove_entries_except(workspace.root(), &[])?;
    let hard_linked = files_with_several_links(listing);
    let mut writer = TreeWriter::new(duplicate_fd(workspace.root())?, None, u64::MAX, u64::MAX);
    let roots: Vec<&str> = spec.globs.roots().collect();
    let mut selected: BTreeMap<RelPath, (u64, u32)> = BTreeMap::new();
    for ((path, kind), index) in listing.entries.iter().zip(&listing.indices) {
        let is_below_root = roots.iter().any(|root| is_below(path, root));
        let is_above_root = roots.iter().any(|root| is_above(path, root));
        let is_selected = is_above_root || (is_below_root && spec.globs.matches(path));
        match kind {
            EntryKind::Directory { .. } if is_above_root || is_below_root => {
                let kind = EntryKind::Directory { mode: 0o755 };
                write_entry(&mut writer, path, kind)?;
            }
            EntryKind::HardLink { .. } if is_selected => write_hard_linked_file(workspace, &mut writer, path, *index)?,
            EntryKind::File { .. } if is_selected && hard_linked.contains(index) => {
                write_hard_linked_file(workspace, &mut writer, path, *index)?;
            }
            EntryKind::File { size, .. } if is_selected => {
                selected.insert(path.clone(), (*size, *index));
            }
            EntryKind::Directory { .. } | EntryKind::File { .. } | EntryKind::HardLink { .. } => {}
            kind if is_selected => write_entry(&mut writer, path, kind.clone())?,
            _ => {}
        }
    }
    let mut quota = FileQuota::new(spec);
    let mut requests = Vec::new();
    for (path, (size, index)) in selected {
        let is_text = path.to_str().is_some();
        if is_text && quota.try_reserve(size) {
            requests.push(FileRequest {
                index,
                path,
                size,
                mode: 0o644,
            });
        } else {
            // The collection refuses this file. For that it needs only the size, so the file stays sparse.
            writer.create_sparse_file(&path, size.min(spec.max_total_bytes.saturating_add(1)))?;
        }
    }
    receive_files(connection, &mut writer, requests)
}

/// Replaces the content of the session's workspace.
fn fetch_all(
    connection: &mut RunnerConnection,
    workspace: &Workspace,
    listing: &Listing,
    limits: &Limits,
) -> Result<Vec<String>, DockerError> {
    let failed = |action| WorkspaceError::io(action, "the files of a run");
    remove_tree(workspace.root(), INCOMING_DIRECTORY).map_err(failed("remove old remains of"))?;
    rustix::fs::mkdirat(
        workspace.root(),
        INCOMING_DIRECTORY,
        rustix::fs::Mode::from_raw_mode(0o755),
    )
    .map_err(failed("create a directory for"))?;
    let incoming = skillbox_runner::open_directory(workspace.root(), INCOMING_DIRECTORY).map_err(failed("open"))?;
    let owner = workspace.owner().map(|owner| (owner.uid, owner.gid));
    let mut writer = TreeWriter::new(
        duplicate_fd(incoming.as_fd())?,
        owner,
        limits.workspace.bytes(),
        limits.workspace_inodes,
    );
    let mut warnings = Vec::new();
    let mut requests = Vec::new();
    let mut paths_by_index: HashMap<u32, &RelPath> = HashMap::new();
    let mut hard_links: Vec<(&RelPath, u32)> = Vec::new();
    let mut quota_left = limits.workspace.bytes();
    for ((path, kind), index) in listing.entries.iter().zip(&listing.indices) {
        match kind {
            EntryKind::File { size, mode } => match quota_left.checked_sub(*size) {
                Some(rest) => {
                    quota_left = rest;
                    paths_by_index.insert(*index, path);
                    requests.push(FileRequest {
                        index: *index,
                        path: path.clone(),
                        size: *size,
                        mode: *mode,
                    });
                }
                // Only a sparse file can be larger than the workspace.
                None => warnings.push(format!("{path} is larger than the workspace and was not kept")),
            },
            EntryKind::HardLink { index } => hard_links.push((path, *index)),
            kind => write_entry(&mut writer, path, kind.clone())?,
        }
    }
    warnings.extend(receive_files(connection, &mut writer, requests)?);
    for (path, first_index) in hard_links {
        if let Some(first) = paths_by_index.get(&first_index) {
            writer.create_hard_link(path, first)?;
        }
    }
    writer.finish()?;
    remove_entries_except(workspace.root(), &[INCOMING_DIRECTORY])?;
    for name in list_names(incoming.as_fd()).map_err(failed("list"))? {
        rustix::fs::renameat(&incoming, name.as_slice(), workspace.root(), name.as_slice())
            .map_err(failed("move into the workspace"))?;
    }
    rustix::fs::unlinkat(workspace.root(), INCOMING_DIRECTORY, AtFlags::REMOVEDIR).map_err(failed("clean up after"))?;
    Ok(warnings)
}

/// A file that the runner is asked to send.
struct FileRequest {
    index: u32,
    path: RelPath,
    size: u64,
    mode: u32,
}

fn receive_files(
    connection: &mut RunnerConnection,
    writer: &mut TreeWriter,
    requests: Vec<FileRequest>,
) -> Result<Vec<String>, DockerError> {
    for batch in requests.chunks(REQUESTS_PER_MESSAGE) {
        connection.queue_message(&ToRunner::RequestFiles(
            batch.iter().map(|request| request.index).collect(),
        ))?;
    }
    connection.queue_message(&ToRunner::EndOfRequests)?;
    let mut warnings = Vec::new();
    let mut pending: VecDeque<FileRequest> = requests.into();
    loop {
        match connection.next_event(Instant::now() + STALL_TIMEOUT, None)? {
            ConnectionEvent::Data(data) => writer.append_data(&data)?,
            ConnectionEvent::Message(ToExecutor::File { index, size }) => {
                let request = pending
                    .pop_front()
                    .filter(|request| request.index == index && request.size == size);
                let Some(request) = request.filter(|_| !writer.expects_data()) else {
                    return Err(DockerError::JobRefused {
                        reason: "it sent a file that was not requested".to_owned(),
                    });
                };
                let kind = EntryKind::File {
                    mode: request.mode,
                    size,
                };
                write_entry(writer, &request.path, kind)?;
            }
            ConnectionEvent::Message(ToExecutor::FileFailed { index, errno }) => {
                if let Some(request) = pending.pop_front().filter(|request| request.index == index) {
                    let cause = std::io::Error::from_raw_os_error(errno);
                    warnings.push(format!("{} could not be read: {cause}", request.path));
                }
            }
            ConnectionEvent::Message(ToExecutor::FilesSent) if pending.is_empty() && !writer.expects_data() => {
                return Ok(warnings);
            }
            ConnectionEvent::Message(other) => return Err(unexpected_message(&other)),
            ConnectionEvent::Output(..) => {}
            ConnectionEvent::Timeout | ConnectionEvent::Cancelled => return Err(container_lost("it stopped sending")),
            ConnectionEvent::Closed => return Err(container_lost("the connection closed")),
        }
    }
}

fn write_entry(writer: &mut TreeWriter, path: &RelPath, kind: EntryKind) -> Result<(), DockerError> {
    let entry = Entry {
        path: path.as_bytes().to_vec(),
        kind,
    };
    Ok(writer.write_entry(&entry)?)
}

/// The indices of files with several hard links.
fn files_with_several_links(listing: &Listing) -> HashSet<u32> {
    let linked_files = listing.entries.iter().filter_map(|(_, kind)| match kind {
        EntryKind::HardLink { index } => Some(*index),
        _ => None,
    });
    linked_files.collect()
}

/// Creates a sparse file with a second hard link outside the workspace, because the collection checks the link count.
fn write_hard_linked_file(
    workspace: &Workspace,
    writer: &mut TreeWriter,
    path: &RelPath,
    index: u32,
) -> Result<(), DockerError> {
    writer.create_sparse_file(path, 0)?;
    let Some(links) = workspace.open_hard_link_directory() else {
        return Ok(());
    };
    let failed = |action| WorkspaceError::io(action, path);
    let (parent, name) = crate::workspace::open_parent(workspace.root(), path).map_err(failed("open the parent of"))?;
    let links = links.map_err(DockerError::io("open the run's directory"))?;
    rustix::fs::linkat(&parent, name, &links, index.to_string(), AtFlags::empty()).map_err(failed("link"))?;
    Ok(())
}

fn is_below(path: &RelPath, root: &str) -> bool {
    let rest = path.as_bytes().strip_prefix(root.as_bytes());
    root.is_empty() || rest.is_some_and(|rest| rest.starts_with(b"/"))
}

fn is_above(path: &RelPath, root: &str) -> bool {
    let rest = root.as_bytes().strip_prefix(path.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Removes everything except the entries in `keep`.
fn remove_entries_except(root: BorrowedFd<'_>, keep: &[&[u8]]) -> Result<(), WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, "the files of an earlier run");
    for name in list_names(root).map_err(failed("list"))? {
        if !keep.contains(&name.as_slice()) {
            remove_tree(root, &name).map_err(failed("clear"))?;
        }
    }
    Ok(())
}

fn list_names(directory: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

fn duplicate_fd(fd: BorrowedFd<'_>) -> Result<OwnedFd, DockerError> {
    fd.try_clone_to_owned()
        .map_err(DockerError::io("duplicate a descriptor"))
}
