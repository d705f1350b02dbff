//! A workspace, accessed only through its directory descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use skillbox_model::{RelPath, RunId};

use super::nofollow;
use super::scratch::ScratchDirectory;
use crate::layout;

/// The owner of staged files, if the server is root and the script is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The script's user on the host.
    pub uid: u32,
    /// The script's group on the host.
    pub gid: u32,
}

/// The storage of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A tmpfs. The kernel limits its bytes and inodes.
    Tmpfs,
    /// A file system in a file of the host. The kernel limits its bytes and inodes.
    Image {
        /// The bytes that it can hold.
        capacity: u64,
    },
    /// A directory of the host. Its usage is checked while a run writes.
    Disk,
}

/// The workspace of a run or a session.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    /// The descriptor to mount, if it is not `root`. Closing the last descriptor of a detached mount removes its files.
    mount: Option<OwnedFd>,
    owner: Option<Owner>,
    backing: Backing,
    /// Whether the layout directories exist and no run has used the workspace since.
    has_layout_directories: bool,
    /// The directory that holds the workspace, if it is removed together with it.
    scratch: Option<ScratchDirectory>,
    /// The directory of the skills, opened before a run mounted anything on it. See `skill_layers.rs`.
    pub(super) skill_layers: OnceLock<OwnedFd>,
}

/// The directories of every workspace.
const LAYOUT_DIRECTORIES: [&str; 7] = [
    layout::SKILLS,
    layout::WORK,
    layout::INPUTS,
    layout::OUT,
    layout::RUNS,
    layout::HOME,
    layout::TMP,
];

/// Why a workspace could not be created or filled.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A system call failed.
    #[error("cannot {action} {path:?} in the workspace")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The affected path below the workspace.
        path: String,
        /// The cause.
        source: Errno,
    },
    /// The source of an input could not be read.
    #[error("cannot read the input for {path:?} in the workspace")]
    Input {
        /// The destination below the workspace.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// An input does not fit into what the workspace has left of its quota.
    #[error("the input for {path:?} exceeds what the workspace has left of its quota")]
    OverQuota {
        /// The destination below the workspace.
        path: String,
    },
    /// A directory was to be copied to a place inside itself.
    #[error("{path:?} is inside the directory that would be copied to it")]
    IntoItself {
        /// The destination below the workspace.
        path: String,
    },
    /// The caller cancelled the run while its inputs were copied.
    #[error("the run was cancelled while its inputs were copied")]
    Cancelled,
    /// Copying the inputs took longer than the run may take.
    #[error("copying the inputs took longer than the time limit of the run")]
    TimedOut,
}

impl WorkspaceError {
    pub(crate) fn io(action: &'static str, path: impl std::fmt::Display) -> impl FnOnce(Errno) -> Self {
        let path = path.to_string();
        move |source| Self::Io { action, path, source }
    }

    /// Whether an existing entry prevents the operation: a link, a file, or a directory where a file must go.
    pub fn is_obstructed(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY)
        )
    }

    /// Whether the workspace has no space left.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::OverQuota { .. }) || matches!(self.errno(), Some(Errno::NOSPC | Errno::DQUOT))
    }

    fn errno(&self) -> Option<Errno> {
        match self {
            Self::Io { source, .. } => Some(*source),
            Self::Input { .. }
            | Self::OverQuota { .. }
            | Self::IntoItself { .. }
            | Self::Cancelled
            | Self::TimedOut => None,
        }
    }
}

impl Workspace {
    /// A workspace in an existing directory, which may contain files.
    pub fn new(root: OwnedFd, owner: Option<Owner>, backing: Backing) -> Self {
        Self {
            root,
            mount: None,
            owner,
            backing,
            has_layout_directories: false,
            scratch: None,
            skill_layers: OnceLock::new(),
        }
    }

    /// Adds the directory that contains the workspace and is removed with it.
    pub(crate) fn with_scratch(mut self, scratch: ScratchDirectory) -> Self {
        self.scratch = Some(scratch);
        self
    }

    /// Opens a directory outside the workspace for additional hard links, if there is one.
    pub(crate) fn open_hard_link_directory(&self) -> Option<std::io::Result<OwnedFd>> {
        self.scratch.as_ref().map(ScratchDirectory::open_hard_links)
    }

    /// The owner of staged files.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// A workspace in memory, on a detached mount (fsmount(2)).
    pub fn in_memory(mount: OwnedFd, owner: Option<Owner>) -> rustix::io::Result<Self> {
        Self::on_detached_mount(mount, owner, Backing::Tmpfs)
    }

    /// A workspace in a file system of its own, on a detached mount.
    pub fn in_image(mount: OwnedFd, owner: Option<Owner>) -> rustix::io::Result<Self> {
        let space = rustix::fs::fstatvfs(&mount)?;
        let capacity = space.f_blocks.saturating_mul(space.f_frsize);
        Self::on_detached_mount(mount, owner, Backing::Image { capacity })
    }

    fn on_detached_mount(mount: OwnedFd, owner: Option<Owner>, backing: Backing) -> rustix::io::Result<Self> {
        // The descriptor from fsmount is `O_PATH`, which cannot be listed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&mount, ".", flags, Mode::empty())?;
        Ok(Self {
            root,
            mount: Some(mount),
            owner,
            backing,
            has_layout_directories: false,
            scratch: None,
            skill_layers: OnceLock::new(),
        })
    }

    /// The descriptor that a sandbox mounts.
    pub fn mount_fd(&self) -> BorrowedFd<'_> {
        self.mount.as_ref().unwrap_or(&self.root).as_fd()
    }

    /// The directory of the workspace.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The storage of the workspace.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// Creates the layout directories in a new workspace ahead of its run.
    pub(crate) fn with_layout_directories(mut self) -> Result<Self, WorkspaceError> {
        self.create_layout_directories()?;
        self.has_layout_directories = true;
        Ok(self)
    }

    fn create_layout_directories(&self) -> Result<(), WorkspaceError> {
        LAYOUT_DIRECTORIES
            .into_iter()
            .try_for_each(|directory| self.ensure_directory(directory))?;
        self.create_agent_directories()
    }

    /// Creates the directories of [`layout::AGENT_DIRECTORIES`] with their links, unless they exist: an earlier run of the
    /// session may have changed them.
    fn create_agent_directories(&self) -> Result<(), WorkspaceError> {
        let failed = |action| WorkspaceError::io(action, layout::HOME);
        let home = nofollow::open_child_directory(self.root(), layout::HOME.as_bytes()).map_err(failed("open"))?;
        let (link, target) = layout::AGENT_SKILLS;
        for directory in layout::AGENT_DIRECTORIES {
            match rustix::fs::mkdirat(&home, directory, Mode::from_raw_mode(0o755)) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(failed("create a directory in")(error)),
            }
            self.set_script_owner(home.as_fd(), directory.as_bytes())
                .map_err(failed("change the owner of a directory in"))?;
            // No process of the run exists yet, so the new directory cannot have become a link.
            rustix::fs::symlinkat(target, &home, format!("{directory}/{link}")).map_err(failed("create a link in"))?;
        }
        Ok(())
    }

    /// Creates the layout directories and the directory of this run. If an earlier run of the session replaced one of
    /// them with a link or a file, the replacement is removed.
    pub fn prepare(&self, run_id: &RunId) -> Result<(), WorkspaceError> {
        if !self.has_layout_directories {
            self.create_layout_directories()?;
        }
        if self.backing != Backing::Tmpfs {
            self.reuse_last_run_directory(run_id);
        }
        self.ensure_directory(&layout::run_directory(run_id))
    }

    /// Renames the directory of the last run for this run, if it is empty. On a disk, creating a directory takes many
    /// times as long as renaming one. This also keeps a session from accumulating empty directories. The last run may
    /// have a greater id, because ids are assigned before runs queue for the session.
    fn reuse_last_run_directory(&self, run_id: &RunId) {
        let own = run_id.as_str().as_bytes();
        let is_other_run =
            |name: &[u8]| name.len() == own.len() && name != own && name.iter().all(u8::is_ascii_hexdigit);
        let Ok(runs) = nofollow::open_child_directory(self.root(), layout::RUNS.as_bytes()) else {
            return;
        };
        let last = nofollow::greatest_name(runs.as_fd(), is_other_run);
        if let Some(last) = last.filter(|last| nofollow::is_empty_directory(runs.as_fd(), last)) {
            // If the rename fails, a new directory is created.
            let _not_renamed = rustix::fs::renameat_with(&runs, &*last, &runs, own, RenameFlags::NOREPLACE);
        }
    }

    pub(super) fn ensure_directory(&self, path: &str) -> Result<(), WorkspaceError> {
        let failed = |action| WorkspaceError::io(action, path);
        let rel = RelPath::parse(path).map_err(|_| failed("name")(Errno::INVAL))?;
        let opened = rel.parent().map(|path| nofollow::open_directory(self.root(), &path));
        let opened = opened.transpose().map_err(failed("open the parent of"))?;
        let (parent, name) = (opened.as_ref().map_or(self.root(), AsFd::as_fd), rel.file_name());
        for _ in 0..2 {
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => {
                    return self
                        .set_script_owner(parent, name)
                        .map_err(failed("change the owner of"));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("create")(error)),
            }
            let stat = nofollow::stat_child(parent, name).map_err(failed("inspect"))?;
            if nofollow::file_type(&stat) == FileType::Directory {
                // An earlier run may have changed the mode.
                if stat.st_mode & 0o777 != 0o755 {
                    let mode = Mode::from_raw_mode(0o755);
                    rustix::fs::chmodat(parent, name, mode, AtFlags::empty()).map_err(failed("change the mode of"))?;
                }
                return Ok(());
            }
            rustix::fs::unlinkat(parent, name, AtFlags::empty()).map_err(failed("remove"))?;
        }
        Err(failed("create")(Errno::EXIST))
    }

    /// Creates all directories above `path`, and opens the innermost. Returns it with the last component of `path`.
    /// Links are not followed.
    pub(crate) fn create_parent<'a>(&self, path: &'a RelPath) -> Result<(OwnedFd, &'a [u8]), WorkspaceError> {
        let failed = |action| WorkspaceError::io(action, path);
        let mut current = rustix::io::fcntl_dupfd_cloexec(self.root(), 0).map_err(failed("open"))?;
        let parts: Vec<&[u8]> = path.components().collect();
        for part in &parts[..parts.len() - 1] {
            match rustix::fs::mkdirat(&current, *part, Mode::from_raw_mode(0o755)) {
                Ok(()) => self
                    .set_script_owner(current.as_fd(), part)
                    .map_err(failed("change the owner of"))?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("create the parent of")(error)),
            }
            current = nofollow::open_child_directory(current.as_fd(), part).map_err(failed("open the parent of"))?;
        }
        Ok((current, parts[parts.len() - 1]))
    }

    /// Makes the script's user the owner of a new entry, unless the script runs as the user of this process.
    pub(crate) fn set_script_owner(&self, parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        let Some(owner) = self.owner else { return Ok(()) };
        let uid = rustix::fs::Uid::from_raw(owner.uid);
        let gid = rustix::fs::Gid::from_raw(owner.gid);
        rustix::fs::chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The disk usage of the workspace in bytes. Counting stops after `max_entries` entries.
    pub fn used_bytes(&self, max_entries: u64) -> u64 {
        match (self.backing, rustix::fs::fstatvfs(&self.root)) {
            (Backing::Tmpfs | Backing::Image { .. }, Ok(space)) => space
                .f_blocks
                .saturating_sub(space.f_bfree)
                .saturating_mul(space.f_frsize),
            _ => nofollow::tree_usage(self.root(), max_entries).0,
        }
    }

    /// Whether the workspace's file system has no bytes or inodes left.
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

    fn prepare(directory_path: &Path, run: &str) {
        let root = File::open(directory_path).unwrap();
        let workspace = Workspace::new(root.into(), None, Backing::Disk);
        workspace.prepare(&RunId::parse(run).unwrap()).unwrap();
    }

    fn names(directory_path: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory_path.join("runs")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn an_empty_run_directory_is_reused_by_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let directory_path = directory.path();
        let inode = |run: &str| fs::metadata(directory_path.join("runs").join(run)).unwrap().ino();
        prepare(directory_path, RUNS[0]);
        let first = inode(RUNS[0]);
        fs::set_permissions(directory_path.join("runs/0190a"), fs::Permissions::from_mode(0o500)).unwrap();
        prepare(directory_path, RUNS[1]);
        assert_eq!(names(directory_path), [RUNS[1]]);
        assert_eq!(inode(RUNS[1]), first);
        let mode = fs::metadata(directory_path.join("runs/0190b")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755, "the mode set by the last run is reset");
    }

    #[test]
    fn runs_out_of_id_order_leave_no_empty_directories() {
        let directory = tempfile::tempdir().unwrap();
        for run in [RUNS[1], RUNS[0], RUNS[2]] {
            prepare(directory.path(), run);
            assert_eq!(names(directory.path()), [run]);
        }
    }

    #[test]
    fn run_directories_with_content_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let directory_path = directory.path();
        prepare(directory_path, RUNS[0]);
        fs::write(directory_path.join("runs/0190a/kept"), "x").unwrap();
        // Neither links nor directories with other names are reused.
        prepare(directory_path, RUNS[1]);
        fs::remove_dir(directory_path.join("runs/0190b")).unwrap();
        std::os::unix::fs::symlink("0190a", directory_path.join("runs/0190b")).unwrap();
        fs::create_dir(directory_path.join("runs/notes")).unwrap();
        prepare(directory_path, RUNS[2]);
        assert_eq!(names(directory_path), [RUNS[0], RUNS[1], RUNS[2], "notes"]);
        assert!(directory_path.join("runs/0190b").is_symlink());
        assert_eq!(fs::read_to_string(directory_path.join("runs/0190a/kept")).unwrap(), "x");
    }
}
