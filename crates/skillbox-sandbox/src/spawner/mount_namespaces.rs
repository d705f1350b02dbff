//! The mount namespaces of the spawner.
//!
//! A new mount namespace is a copy of its parent's, so the cost of a launch grows with the number of mounts that the
//! spawner sees. The spawner therefore stays in an almost empty namespace, and enters the namespace of the host only to
//! clone a tree. The spawner of an ordinary user first creates a user namespace that owns both.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::host::{HostFacts, MountApi, UidGid};
use crate::id_maps::write_id_maps;
use crate::kernel::mount::{
    self, AttributeTiming, FsOption, MountCloner, MountScope, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY,
};
use crate::root::DeviceFilesystem;

/// The mount namespaces of the spawner.
pub(super) struct MountNamespaces {
    host: OwnedFd,
    /// The namespace in which the spawner stays between launches.
    idle: OwnedFd,
    /// The outer `/proc`, through which a child writes its id maps.
    pub proc: OwnedFd,
    /// Clones trees of the host.
    pub mount_cloner: MountCloner,
}

/// The mounts that the spawner sees between launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleMounts {
    /// `/proc` and a few device nodes: best for many launches.
    Minimal,
    /// A private copy of the host's mounts: cheaper for a single launch, because building its template unmounts them
    /// anyway.
    HostCopy,
}

impl MountNamespaces {
    /// Creates the idle namespace and enters it. The process must have one thread.
    pub fn create(facts: &HostFacts, idle_mounts: IdleMounts) -> io::Result<Self> {
        let proc = open(
            "/proc",
            OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        if !facts.privileged {
            enter_user_namespace(&proc, facts.script_ids)?;
        }
        let mount_cloner = MountCloner {
            scope: if facts.privileged {
                MountScope::Single
            } else {
                MountScope::Recursive
            },
            attribute_timing: match facts.mount_api {
                MountApi::DescriptorsWithRemount => AttributeTiming::AfterAttach,
                MountApi::Descriptors | MountApi::MountByPath => AttributeTiming::BeforeAttach,
            },
        };
        let host = open_own_mount_namespace()?;
        unshare_mounts()?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        if idle_mounts == IdleMounts::Minimal {
            build_minimal_mounts(mount_cloner.scope)?;
        }
        let idle = open_own_mount_namespace()?;
        Ok(Self {
            host,
            idle,
            proc,
            mount_cloner,
        })
    }

    /// Enters the namespace of the host, until [`Self::return_to_idle_namespace`].
    pub fn enter_host_namespace(&self) -> io::Result<()> {
        enter_mount_namespace(self.host.as_fd())
    }

    /// Calls `work` in the namespace of the host.
    pub fn run_in_host_namespace<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        enter_mount_namespace(self.host.as_fd())?;
        let result = work();
        self.return_to_idle_namespace()?;
        Ok(result)
    }

    /// Returns to the idle namespace from any other one.
    pub fn return_to_idle_namespace(&self) -> io::Result<()> {
        enter_mount_namespace(self.idle.as_fd())
    }

    /// Calls `work` in a new mount namespace, which is a copy of the idle one.
    pub fn run_in_new_namespace<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        unshare_mounts()?;
        let result = work();
        self.return_to_idle_namespace()?;
        Ok(result)
    }
}

fn unshare_mounts() -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    Ok(())
}

/// Moves this process into a mount namespace.
pub(super) fn enter_mount_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Mount))?)
}

/// Opens the current mount namespace of this process.
pub(super) fn open_own_mount_namespace() -> io::Result<OwnedFd> {
    Ok(open(
        "/proc/self/ns/mnt",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Replaces the copy of the host's mounts by a root that contains only the outer `/proc` and the device nodes.
fn build_minimal_mounts(scope: MountScope) -> io::Result<()> {
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
    let devices = DeviceFilesystem::create(&DeviceFilesystem::ALL_NAMES)?;
    let proc = mount::clone_tree(slash.as_fd(), "proc", scope)?;
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
    mount::set_attributes(
        root.as_fd(),
        READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC,
        MountScope::Single,
    )?;
    rustix::process::fchdir(&root)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// Enters a new user namespace, which maps only the given ids, and a new mount namespace that it owns.
fn enter_user_namespace(proc: &OwnedFd, ids: UidGid) -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)? };
    write_id_maps(proc.as_fd(), ids, ids)
}
