//! Bringing files back from a container into the host's side of its workspace.
//!
//! The runner lists what there is; only what is wanted is sent. What is listed but not sent becomes a hollow file, a
//! link or a FIFO of the same name, so that the collection that follows finds, refuses and counts the same things as on
//! a workspace of this host.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::AtFlags;
use rustix::io::Errno;
use skillbox_model::{Limits, RelPath};
use skillbox_runner::{Entry, EntryKind, Place, ToExecutor, ToRunner};

use super::DockerError;
use super::line::{Heard, Line};
use super::supervise::unexpected;
use crate::job::Collecting;
use crate::workspace::{Acceptance, Workspace, WorkspaceError, remove_tree};

/// A runner that sends nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// Wishes in one message.
const BATCH: usize = 1024;
/// Where the files of a session arrive before they take the places of the old ones.
const INCOMING: &[u8] = b".skillbox-incoming";

/// What comes back.
#[derive(Clone, Copy, Debug)]
pub enum Bring<'a> {
    /// What the collection asks for: the workspace is gone after the run.
    Wanted(&'a Collecting),
    /// Everything: the workspace is a session's.
    Everything,
}

/// The list of a workspace.
struct Listing {
    entries: Vec<(RelPath, EntryKind)>,
    /// The place in the runner's list of each of ours.
    indices: Vec<u32>,
    left_out: u64,
}

/// Brings back what is asked for; gives what the caller should know.
pub(super) fn fetch(
    line: &mut Line,
    workspace: &Workspace,
    bring: Bring<'_>,
    limits: &Limits,
) -> Result<Vec<String>, DockerError> {
    let listing = list(line, limits)?;
    let mut warnings = match bring {
        Bring::Wanted(how) => fetch_wanted(line, workspace, &listing, how)?,
        Bring::Everything => fetch_everything(line, workspace, &listing, limits)?,
    };
    if listing.left_out > 0 {
        warnings.push(format!(
            "{} entries of the workspace could not be listed",
            listing.left_out
        ));
    }
    Ok(warnings)
}

fn list(line: &mut Line, limits: &Limits) -> Result<Listing, DockerError> {
    let mut listing = Listing {
        entries: Vec::new(),
        indices: Vec::new(),
        left_out: 0,
    };
    let mut index: u32 = 0;
    loop {
        match next(line)? {
            ToExecutor::Listed(Entry { path, kind }) => {
                // More than the workspace can hold is no list of it.
                if u64::from(index) > limits.workspace_inodes {
                    return Err(DockerError::Refused {
                        reason: "it lists more than the workspace can hold".to_owned(),
                    });
                }
                match RelPath::parse(&path) {
                    Ok(path) if path.components().next() != Some(INCOMING) => {
                        listing.entries.push((path, kind));
                        listing.indices.push(index);
                    }
                    _ => listing.left_out += 1,
                }
                index += 1;
            }
            ToExecutor::ListEnd { left_out } => {
                listing.left_out += left_out;
                return Ok(listing);
            }
            other => return Err(unexpected(&other)),
        }
    }
}

fn next(line: &mut Line) -> Result<ToExecutor, DockerError> {
    loop {
        match line.hear(Instant::now() + PATIENCE, None)? {
            Heard::Message(message) => return Ok(message),
            Heard::Data(_) | Heard::Output(..) => {}
            Heard::Nothing | Heard::Cancelled => return Err(lost("it sends nothing any more")),
            Heard::Closed => return Err(lost("its line ended")),
        }
    }
}

fn lost(cause: &str) -> DockerError {
    DockerError::Lost {
        during: "while its files were brought back",
        cause: cause.to_owned(),
    }
}

/// Rebuilds the parts of the workspace that the globs look at.
fn fetch_wanted(
    line: &mut Line,
    workspace: &Workspace,
    listing: &Listing,
    how: &Collecting,
) -> Result<Vec<String>, DockerError> {
    clear(workspace.root(), &[])?;
    let linked = several_names(listing);
    let mut place = Place::new(dup(workspace.root())?, None, u64::MAX, u64::MAX);
    let roots: Vec<&str> = how.globs.roots().collect();
    let mut wanted: BTreeMap<RelPath, (u64, u32)> = BTreeMap::new();
    for ((path, kind), index) in listing.entries.iter().zip(&listing.indices) {
        let below_a_root = roots.iter().any(|root| is_below(path, root));
        let above_a_root = roots.iter().any(|root| is_above(path, root));
        let is_asked = above_a_root || (below_a_root && how.globs.matches(path));
        match kind {
            EntryKind::Directory { .. } if above_a_root || below_a_root => {
                let kind = EntryKind::Directory { mode: 0o755 };
                place_one(&mut place, path, kind)?;
            }
            EntryKind::HardLink { .. } if is_asked => second_name(workspace, &mut place, path, *index)?,
            EntryKind::File { .. } if is_asked && linked.contains(index) => {
                second_name(workspace, &mut place, path, *index)?;
            }
            EntryKind::File { size, .. } if is_asked => {
                wanted.insert(path.clone(), (*size, *index));
            }
            EntryKind::Directory { .. } | EntryKind::File { .. } | EntryKind::HardLink { .. } => {}
            kind if is_asked => place_one(&mut place, path, kind.clone())?,
            _ => {}
        }
    }
    let mut acceptance = Acceptance::new(how);
    let mut wishes = Vec::new();
    for (path, (size, index)) in wanted {
        let is_text = path.to_str().is_some();
        if is_text && acceptance.accepts(size) {
            wishes.push(Wish {
                index,
                path,
                size,
                mode: 0o644,
            });
        } else {
            // Its size is all that a refusal needs, and no more than that is written down.
            place.hollow(&path, size.min(how.max_total_bytes.saturating_add(1)))?;
        }
    }
    receive(line, &mut place, wishes)
}

/// Puts everything in the place of what the session had.
fn fetch_everything(
    line: &mut Line,
    workspace: &Workspace,
    listing: &Listing,
    limits: &Limits,
) -> Result<Vec<String>, DockerError> {
    let failed = |action| WorkspaceError::new(action, "the files of a run");
    remove_tree(workspace.root(), INCOMING).map_err(failed("clear the way for"))?;
    rustix::fs::mkdirat(workspace.root(), INCOMING, rustix::fs::Mode::from_raw_mode(0o755))
        .map_err(failed("make room for"))?;
    let incoming = skillbox_runner::open_directory(workspace.root(), INCOMING).map_err(failed("open"))?;
    let owner = workspace.owner().map(|owner| (owner.uid, owner.gid));
    let mut place = Place::new(
        dup(incoming.as_fd())?,
        owner,
        limits.workspace.bytes(),
        limits.workspace_inodes,
    );
    let mut warnings = Vec::new();
    let mut wishes = Vec::new();
    let mut names: HashMap<u32, &RelPath> = HashMap::new();
    let mut second: Vec<(&RelPath, u32)> = Vec::new();
    let mut left = limits.workspace.bytes();
    for ((path, kind), index) in listing.entries.iter().zip(&listing.indices) {
        match kind {
            EntryKind::File { size, mode } => match left.checked_sub(*size) {
                Some(rest) => {
                    left = rest;
                    names.insert(*index, path);
                    wishes.push(Wish {
                        index: *index,
                        path: path.clone(),
                        size: *size,
                        mode: *mode,
                    });
                }
                // Only a file with holes is larger than what holds it.
                None => warnings.push(format!("{path}: larger than the workspace, and not kept")),
            },
            EntryKind::HardLink { index } => second.push((path, *index)),
            kind => place_one(&mut place, path, kind.clone())?,
        }
    }
    warnings.extend(receive(line, &mut place, wishes)?);
    for (path, first) in second {
        if let Some(first) = names.get(&first) {
            place.hard_link(path, first)?;
        }
    }
    place.finish()?;
    clear(workspace.root(), &[INCOMING])?;
    for name in names_in(incoming.as_fd()).map_err(failed("list"))? {
        rustix::fs::renameat(&incoming, name.as_slice(), workspace.root(), name.as_slice())
            .map_err(failed("put in place"))?;
    }
    rustix::fs::unlinkat(workspace.root(), INCOMING, AtFlags::REMOVEDIR).map_err(failed("tidy up after"))?;
    Ok(warnings)
}

/// A file that is to be sent.
struct Wish {
    index: u32,
    path: RelPath,
    size: u64,
    mode: u32,
}

fn receive(line: &mut Line, place: &mut Place, wishes: Vec<Wish>) -> Result<Vec<String>, DockerError> {
    for batch in wishes.chunks(BATCH) {
        line.tell(&ToRunner::Want(batch.iter().map(|wish| wish.index).collect()))?;
    }
    line.tell(&ToRunner::WantEnd)?;
    let mut warnings = Vec::new();
    let mut open: VecDeque<Wish> = wishes.into();
    loop {
        match line.hear(Instant::now() + PATIENCE, None)? {
            Heard::Data(data) => place.data(&data)?,
            Heard::Message(ToExecutor::File { index, size }) => {
                let wish = open.pop_front().filter(|wish| wish.index == index && wish.size == size);
                let Some(wish) = wish.filter(|_| !place.is_waiting()) else {
                    return Err(DockerError::Refused {
                        reason: "it sends a file that nobody asked for".to_owned(),
                    });
                };
                let kind = EntryKind::File { mode: wish.mode, size };
                place_one(place, &wish.path, kind)?;
            }
            Heard::Message(ToExecutor::FileFailed { index, errno }) => {
                if let Some(wish) = open.pop_front().filter(|wish| wish.index == index) {
                    let cause = std::io::Error::from_raw_os_error(errno);
                    warnings.push(format!("{} could not be read: {cause}", wish.path));
                }
            }
            Heard::Message(ToExecutor::Done) if open.is_empty() && !place.is_waiting() => return Ok(warnings),
            Heard::Message(other) => return Err(unexpected(&other)),
            Heard::Output(..) => {}
            Heard::Nothing | Heard::Cancelled => return Err(lost("it sends nothing any more")),
            Heard::Closed => return Err(lost("its line ended")),
        }
    }
}

fn place_one(place: &mut Place, path: &RelPath, kind: EntryKind) -> Result<(), DockerError> {
    let entry = Entry {
        path: path.as_bytes().to_vec(),
        kind,
    };
    Ok(place.entry(&entry)?)
}

/// Files with more than one name, by their places in the list.
fn several_names(listing: &Listing) -> HashSet<u32> {
    let second = listing.entries.iter().filter_map(|(_, kind)| match kind {
        EntryKind::HardLink { index } => Some(*index),
        _ => None,
    });
    second.collect()
}

/// A hollow file with another name outside the workspace: the collection counts names.
fn second_name(workspace: &Workspace, place: &mut Place, path: &RelPath, index: u32) -> Result<(), DockerError> {
    place.hollow(path, 0)?;
    let Some(links) = workspace.second_names() else {
        return Ok(());
    };
    let failed = |action| WorkspaceError::new(action, path);
    let (parent, name) = crate::workspace::open_parent(workspace.root(), path).map_err(failed("open the parent of"))?;
    let links = links.map_err(DockerError::io("open a directory of the run"))?;
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

/// Removes everything but the named.
fn clear(root: BorrowedFd<'_>, keep: &[&[u8]]) -> Result<(), WorkspaceError> {
    let failed = |action| WorkspaceError::new(action, "what a run left");
    for name in names_in(root).map_err(failed("list"))? {
        if !keep.contains(&name.as_slice()) {
            remove_tree(root, &name).map_err(failed("clear"))?;
        }
    }
    Ok(())
}

fn names_in(directory: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

fn dup(fd: BorrowedFd<'_>) -> Result<OwnedFd, DockerError> {
    fd.try_clone_to_owned().map_err(DockerError::io("copy a descriptor"))
}
