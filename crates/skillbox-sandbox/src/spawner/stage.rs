//! Where the spawner stands: a mount namespace with next to nothing in it.
//!
//! A child copies its parent's mounts, so the cost of a launch would grow with the mounts of the host. The spawner
//! keeps a descriptor of the namespace that shows the host, goes there for the moment it takes to copy a tree, and
//! lives on an empty stage otherwise. An ordinary user first gets a user namespace to hold both.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::host::{HostFacts, MountApi};
use crate::kernel::mount::{self, Copying, Depth, FsOption, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY, Settled};
use crate::plan::Ids;
use crate::root::Devices;

/// The mount namespaces of the spawner.
pub(super) struct Stage {
    host: OwnedFd,
    stage: OwnedFd,
    /// The outer `/proc`, through which a child writes its id maps.
    pub proc: OwnedFd,
    /// How the host's mounts are copied here.
    pub copying: Copying,
}

/// Where a spawner stands between launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On the empty stage: right for many launches.
    Empty,
    /// On a private copy of the host's mounts: enough for one launch, whose template leaves them behind all the same.
    Copy,
}

impl Stage {
    /// Makes the stage and goes there. The process must have one thread.
    pub fn set_up(facts: &HostFacts, place: Place) -> io::Result<Self> {
        let proc = open(
            "/proc",
            OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        if !facts.privileged {
            hold_namespaces(&proc, facts.script)?;
        }
        let copying = Copying {
            depth: if facts.privileged { Depth::One } else { Depth::Whole },
            settled: match facts.mount_api {
                MountApi::Remounts => Settled::OnceItIsAttached,
                MountApi::Descriptors | MountApi::Paths => Settled::BeforeItIsAttached,
            },
        };
        let host = own_mount_namespace()?;
        unshare_mounts()?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        if place == Place::Empty {
            build(copying.depth)?;
        }
        let stage = own_mount_namespace()?;
        Ok(Self {
            host,
            stage,
            proc,
            copying,
        })
    }

    /// Goes to where the host is in view, until [`Self::come_back`].
    pub fn enter_host(&self) -> io::Result<()> {
        enter(self.host.as_fd())
    }

    /// Does something with the host's mounts in view.
    pub fn at_host<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        enter(self.host.as_fd())?;
        let result = work();
        self.come_back()?;
        Ok(result)
    }

    /// Returns to the stage from wherever the process is.
    pub fn come_back(&self) -> io::Result<()> {
        enter(self.stage.as_fd())
    }

    /// Does something in a new mount namespace that starts as a copy of the stage, and comes back.
    pub fn inside_new<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        unshare_mounts()?;
        let result = work();
        self.come_back()?;
        Ok(result)
    }
}

fn unshare_mounts() -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    Ok(())
}

/// Moves this process into a mount namespace.
pub(super) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Mount))?)
}

/// The mount namespace that this process is in.
pub(super) fn own_mount_namespace() -> io::Result<OwnedFd> {
    Ok(open(
        "/proc/self/ns/mnt",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// An empty root with the outer `/proc` and the device nodes, which replaces the copy of the host's mounts.
fn build(depth: Depth) -> io::Result<()> {
    let options = [
        FsOption("size", "64k"),
        FsOption("nr_inodes", "16"),
        FsOption("mode", "0755"),
    ];
    let root = mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES)?;
    for directory in ["proc", "dev"] {
        mkdirat(&root, directory, Mode::from_raw_mode(0o755))?;
    }
    let slash = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let devices = Devices::make(&Devices::ALL)?;
    let proc = mount::copy_tree(slash.as_fd(), "proc", depth)?;
    mount::attach(root.as_fd(), slash.as_fd())?;
    for (mount, name) in [(&proc, "proc"), (&devices.root, "dev")] {
        let target = openat(
            &root,
            name,
            OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        mount::attach(mount.as_fd(), target.as_fd())?;
    }
    devices.finish()?;
    mount::set_attributes(root.as_fd(), READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, Depth::One)?;
    rustix::process::fchdir(&root)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// A user namespace for the mounts of an ordinary user, with the user's own ids and no others.
fn hold_namespaces(proc: &OwnedFd, ids: Ids) -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)? };
    write_id_maps(proc.as_fd(), ids, ids)
}

/// Writes the maps of the process's own new user namespace: one user, one group, no supplementary groups to come.
pub(crate) fn write_id_maps(proc: BorrowedFd<'_>, inside: Ids, outside: Ids) -> io::Result<()> {
    // Whatever the descriptor leads to, only the kernel's own files get the maps.
    if rustix::fs::fstatfs(proc)?.f_type != libc::PROC_SUPER_MAGIC {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // The files of a process that cannot be dumped belong to root, whom a new namespace does not know.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let written = (|| {
        write_file(proc, "self/setgroups", "deny")?;
        write_file(proc, "self/uid_map", &format!("{} {} 1", inside.uid, outside.uid))?;
        write_file(proc, "self/gid_map", &format!("{} {} 1", inside.gid, outside.gid))
    })();
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    written
}

fn write_file(directory: BorrowedFd<'_>, name: &str, content: &str) -> io::Result<()> {
    let file = openat(
        directory,
        name,
        OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    rustix::io::write(&file, content.as_bytes())?;
    Ok(())
}
