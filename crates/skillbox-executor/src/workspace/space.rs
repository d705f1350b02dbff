//! A workspace as a directory descriptor, whatever it lies on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use skillbox_model::{RelPath, RunId};

use super::{beneath, layout};
use crate::docker::Scratch;

/// Who owns what is placed in a workspace, when the server is root and the script is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The script's user on the host.
    pub uid: u32,
    /// The script's group on the host.
    pub gid: u32,
}

/// What a workspace lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Memory, limited in bytes and inodes by the kernel.
    Tmpfs,
    /// A directory of the host, watched while a run writes.
    Disk,
}

/// One workspace, reached only through its descriptor.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    /// What a sandbox mounts, where that is not the directory itself: closing it would take the files with it.
    mount: Option<OwnedFd>,
    owner: Option<Owner>,
    backing: Backing,
    /// Whether the documented directories were made, and nobody has been there since.
    is_furnished: bool,
    /// Where it lies, when that is gone with it.
    scratch: Option<Scratch>,
}

/// What every workspace has.
const FURNITURE: [&str; 7] = [
    layout::SKILLS,
    layout::WORK,
    layout::INPUTS,
    layout::OUT,
    layout::RUNS,
    layout::HOME,
    layout::TMP,
];

/// Why a workspace could not be made or filled.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The system refused.
    #[error("cannot {action} {path:?} in the workspace")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what, below the workspace.
        path: String,
        /// What the system said.
        source: Errno,
    },
    /// An input could not be read to its end, or is not what it should be.
    #[error("cannot read the input for {path:?} in the workspace")]
    Input {
        /// Where it was to go, below the workspace.
        path: String,
        /// What its source said.
        source: std::io::Error,
    },
}

impl WorkspaceError {
    pub(crate) fn new(action: &'static str, path: impl std::fmt::Display) -> impl FnOnce(Errno) -> Self {
        let path = path.to_string();
        move |source| Self::Io { action, path, source }
    }

    /// Whether something stood in the way that is not a directory: a link, a file, or a directory where a file goes.
    pub fn is_obstacle(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY)
        )
    }

    /// Whether the workspace was full.
    pub fn is_full(&self) -> bool {
        matches!(self.errno(), Some(Errno::NOSPC | Errno::DQUOT))
    }

    fn errno(&self) -> Option<Errno> {
        match self {
            Self::Io { source, .. } => Some(*source),
            Self::Input { .. } => None,
        }
    }
}

impl Workspace {
    /// Takes over an empty or used directory as a workspace.
    pub fn new(root: OwnedFd, owner: Option<Owner>, backing: Backing) -> Self {
        Self {
            root,
            mount: None,
            owner,
            backing,
            is_furnished: false,
            scratch: None,
        }
    }

    /// The same on a directory that is removed with it.
    pub(crate) fn with_scratch(mut self, scratch: Scratch) -> Self {
        self.scratch = Some(scratch);
        self
    }

    /// A directory beside the workspace, where it has one.
    pub(crate) fn second_names(&self) -> Option<std::io::Result<OwnedFd>> {
        self.scratch.as_ref().map(Scratch::links)
    }

    /// Who owns what is placed in it.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// A workspace in memory, from the descriptor of a mount that hangs nowhere yet.
    pub fn in_memory(mount: OwnedFd, owner: Option<Owner>) -> rustix::io::Result<Self> {
        // The mount's own descriptor only names it; ours is listed and searched as well.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&mount, ".", flags, Mode::empty())?;
        Ok(Self {
            root,
            mount: Some(mount),
            owner,
            backing: Backing::Tmpfs,
            is_furnished: false,
            scratch: None,
        })
    }

    /// What a sandbox mounts.
    pub fn mountable(&self) -> BorrowedFd<'_> {
        self.mount.as_ref().unwrap_or(&self.root).as_fd()
    }

    /// The directory itself.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// What it lies on.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// Makes the documented directories ahead, in a workspace that no run has used.
    pub(crate) fn furnished(mut self) -> Result<Self, WorkspaceError> {
        self.furnish()?;
        self.is_furnished = true;
        Ok(self)
    }

    fn furnish(&self) -> Result<(), WorkspaceError> {
        FURNITURE
            .into_iter()
            .try_for_each(|directory| self.ensure_own_directory(directory))
    }

    /// Makes the documented directories and one for this run. What a former run of the session put in their
    /// place, be it a link or a file, gives way.
    pub fn prepare(&self, run_id: &RunId) -> Result<(), WorkspaceError> {
        if !self.is_furnished {
            self.furnish()?;
        }
        if self.backing == Backing::Disk {
            self.pass_on_run_directory(run_id);
        }
        self.ensure_own_directory(&layout::run_directory(run_id))
    }

    /// Gives the directory of the last run to this one, where that run left nothing in it. On a disk a new directory
    /// costs many times what another name costs, and a session does not gather an empty one for each run. The last one
    /// may have the greater id: ids are given before runs wait for each other.
    fn pass_on_run_directory(&self, run_id: &RunId) {
        let own = run_id.as_str().as_bytes();
        let is_other_run =
            |name: &[u8]| name.len() == own.len() && name != own && name.iter().all(u8::is_ascii_hexdigit);
        let Ok(runs) = beneath::open_child_directory(self.root(), layout::RUNS.as_bytes()) else {
            return;
        };
        let last = beneath::greatest_name(runs.as_fd(), is_other_run);
        if let Some(last) = last.filter(|last| beneath::is_empty_directory(runs.as_fd(), last)) {
            // Where it cannot be had, a new one is made.
            let _stays = rustix::fs::renameat_with(&runs, &*last, &runs, own, RenameFlags::NOREPLACE);
        }
    }

    fn ensure_own_directory(&self, path: &str) -> Result<(), WorkspaceError> {
        let failed = |action| WorkspaceError::new(action, path);
        let rel = RelPath::parse(path).map_err(|_| failed("name")(Errno::INVAL))?;
        let above = rel.parent().map(|above| beneath::open_directory(self.root(), &above));
        let above = above.transpose().map_err(failed("open the parent of"))?;
        let (parent, name) = (above.as_ref().map_or(self.root(), AsFd::as_fd), rel.file_name());
        for _ in 0..2 {
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => {
                    return self.give_away(parent, name).map_err(failed("change the owner of"));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("create")(error)),
            }
            let stat = beneath::stat_child(parent, name).map_err(failed("look at"))?;
            if beneath::file_type(&stat) == FileType::Directory {
                // A former run may have locked the next one out.
                if stat.st_mode & 0o777 != 0o755 {
                    let mode = Mode::from_raw_mode(0o755);
                    rustix::fs::chmodat(parent, name, mode, AtFlags::empty()).map_err(failed("open up"))?;
                }
                return Ok(());
            }
            rustix::fs::unlinkat(parent, name, AtFlags::empty()).map_err(failed("remove"))?;
        }
        Err(failed("create")(Errno::EXIST))
    }

    /// Makes every directory above `path`, and opens the innermost. Links on the way are not followed.
    pub(crate) fn make_parent<'a>(&self, path: &'a RelPath) -> Result<(OwnedFd, &'a [u8]), WorkspaceError> {
        let failed = |action| WorkspaceError::new(action, path);
        let mut current = rustix::io::fcntl_dupfd_cloexec(self.root(), 0).map_err(failed("open"))?;
        let parts: Vec<&[u8]> = path.components().collect();
        for part in &parts[..parts.len() - 1] {
            match rustix::fs::mkdirat(&current, *part, Mode::from_raw_mode(0o755)) {
                Ok(()) => self
                    .give_away(current.as_fd(), part)
                    .map_err(failed("change the owner of"))?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("create the parent of")(error)),
            }
            current = beneath::open_child_directory(current.as_fd(), part).map_err(failed("open the parent of"))?;
        }
        Ok((current, parts[parts.len() - 1]))
    }

    /// Gives a new entry to the script's user, where that is another one.
    pub(crate) fn give_away(&self, parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        let Some(owner) = self.owner else { return Ok(()) };
        let uid = rustix::fs::Uid::from_raw(owner.uid);
        let gid = rustix::fs::Gid::from_raw(owner.gid);
        rustix::fs::chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Bytes on disk of everything in it, counted as far as `enough` entries.
    pub fn used_bytes(&self, enough: u64) -> u64 {
        beneath::tree_usage(self.root(), enough).0
    }

    /// Empties the directory of mounted skills: whatever stands there was not put there by us for this run.
    pub fn clear_skills(&self) -> Result<(), WorkspaceError> {
        // Mostly there is nothing, and removing a directory only to make it again is slow on a disk.
        if beneath::is_empty_directory(self.root(), layout::SKILLS.as_bytes()) {
            return Ok(());
        }
        super::remove_tree(self.root(), layout::SKILLS.as_bytes()).map_err(WorkspaceError::new("clear", layout::SKILLS))
    }

    /// Whether the file system of the workspace has no room left, in bytes or inodes.
    pub fn is_full(&self) -> bool {
        match rustix::fs::fstatvfs(&self.root) {
            Ok(space) => space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::*;

    const RUNS: [&str; 3] = ["0190a", "0190b", "0190c"];

    fn prepare(place: &Path, run: &str) {
        let root = File::open(place).unwrap();
        let workspace = Workspace::new(root.into(), None, Backing::Disk);
        workspace.prepare(&RunId::parse(run).unwrap()).unwrap();
    }

    fn names(place: &Path) -> Vec<String> {
        let entries = fs::read_dir(place.join("runs")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_next_run_gets_the_directory_that_the_last_one_left_empty() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let inode = |run: &str| fs::metadata(place.join("runs").join(run)).unwrap().ino();
        prepare(place, RUNS[0]);
        let first = inode(RUNS[0]);
        fs::set_permissions(place.join("runs/0190a"), fs::Permissions::from_mode(0o500)).unwrap();
        prepare(place, RUNS[1]);
        assert_eq!(names(place), [RUNS[1]]);
        assert_eq!(inode(RUNS[1]), first);
        let mode = fs::metadata(place.join("runs/0190b")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755, "no run is locked out by the one before");
    }

    #[test]
    fn runs_that_come_in_another_order_than_their_ids_gather_nothing() {
        let directory = tempfile::tempdir().unwrap();
        for run in [RUNS[1], RUNS[0], RUNS[2]] {
            prepare(directory.path(), run);
            assert_eq!(names(directory.path()), [run]);
        }
    }

    #[test]
    fn what_a_run_left_stays_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        prepare(place, RUNS[0]);
        fs::write(place.join("runs/0190a/kept"), "x").unwrap();
        // Neither a link nor a directory of the script's own is passed on, whatever their names.
        prepare(place, RUNS[1]);
        fs::remove_dir(place.join("runs/0190b")).unwrap();
        std::os::unix::fs::symlink("0190a", place.join("runs/0190b")).unwrap();
        fs::create_dir(place.join("runs/notes")).unwrap();
        prepare(place, RUNS[2]);
        assert_eq!(names(place), [RUNS[0], RUNS[1], RUNS[2], "notes"]);
        assert!(place.join("runs/0190b").is_symlink());
        assert_eq!(fs::read_to_string(place.join("runs/0190a/kept")).unwrap(), "x");
    }
}
