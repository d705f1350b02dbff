//! Where the spawner stands: a mount namespace with next to nothing in it, from which every child starts.
//!
//! A child copies its parent's mounts, so the cost of a launch would grow with the mounts of the host. The spawner
//! keeps a descriptor of the namespace that shows the host, goes there for the moment it takes to copy a tree, and
//! clones its children on the empty stage. An ordinary user first gets a user namespace to hold both.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, open, openat, symlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::host::HostFacts;
use crate::kernel::mount::{self, Depth, FsOption, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use crate::plan::Ids;

/// The directory of the stage that new roots are mounted on.
pub(crate) const ROOT_MOUNT_POINT: &str = "/root";

/// The directory of the stage that holds the device nodes.
pub(crate) const DEVICES: &str = "/dev";

/// Names and numbers of the device nodes.
const NODES: [(&str, u32, u32); 5] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
];

/// Both mount namespaces of the spawner.
pub(super) struct Stage {
    host: OwnedFd,
    stage: OwnedFd,
    /// A host's mounts are locked together in a user namespace, and then copied only as a whole.
    pub depth: Depth,
}

impl Stage {
    /// Makes the stage and goes there. The process must have one thread.
    pub fn set_up(facts: &HostFacts) -> io::Result<Self> {
        if !facts.privileged {
            hold_namespaces(facts.script)?;
        }
        let depth = if facts.privileged { Depth::One } else { Depth::Whole };
        let host = own_mount_namespace()?;
        // SAFETY: no descriptor table is unshared.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let root = mount::new_filesystem(
            "tmpfs",
            &[
                FsOption::Text("size", "1m"),
                FsOption::Text("nr_inodes", "64"),
                FsOption::Text("mode", "0755"),
            ],
            NO_SUID | NO_DEVICES,
        )?;
        for directory in ["proc", "dev", "root"] {
            mkdirat(&root, directory, Mode::from_raw_mode(0o755))?;
        }
        let slash = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let devices = device_nodes(&slash)?;
        let proc = mount::copy_tree(slash.as_fd(), "proc", depth)?;
        mount::attach(root.as_fd(), slash.as_fd())?;
        attach_at(&proc, &root, "proc")?;
        attach_at(&devices.root, &root, "dev")?;
        for (name, node) in &devices.bound {
            attach_at(node, &devices.root, name)?;
        }
        mount::set_attributes(devices.root.as_fd(), READ_ONLY | NO_SUID | NO_EXEC, Depth::Whole)?;
        mount::set_attributes(root.as_fd(), READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, Depth::One)?;
        rustix::process::fchdir(&root)?;
        rustix::process::pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        let stage = own_mount_namespace()?;
        Ok(Self { host, stage, depth })
    }

    /// The mount namespace that shows the host.
    pub fn host_mounts(&self) -> io::Result<OwnedFd> {
        self.host.try_clone()
    }

    /// Does something with the host's mounts in view.
    pub fn at_host<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        enter(self.host.as_fd())?;
        let result = work();
        enter(self.stage.as_fd())?;
        Ok(result)
    }
}

fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Mount))?)
}

pub(super) fn own_mount_namespace() -> io::Result<OwnedFd> {
    Ok(open(
        "/proc/self/ns/mnt",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

fn attach_at(mount: &OwnedFd, directory: &OwnedFd, name: &str) -> io::Result<()> {
    let target = openat(
        directory,
        name,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    mount::attach(mount.as_fd(), target.as_fd())
}

/// A user namespace for the mounts of an ordinary user, with the user's own ids and no others.
fn hold_namespaces(ids: Ids) -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)? };
    write_id_maps(ids, ids)
}

/// Writes the maps of the process's own new user namespace: one user, one group, no supplementary groups to come.
pub(crate) fn write_id_maps(inside: Ids, outside: Ids) -> io::Result<()> {
    let proc = open(
        "/proc/self",
        OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let on_proc = rustix::fs::fstatfs(&proc)?.f_type == libc::PROC_SUPER_MAGIC;
    if !on_proc {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // The files of a process that cannot be dumped belong to root, whom a new namespace does not know.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let written = (|| {
        write_file(&proc, "setgroups", "deny")?;
        write_file(&proc, "uid_map", &format!("{} {} 1", inside.uid, outside.uid))?;
        write_file(&proc, "gid_map", &format!("{} {} 1", inside.gid, outside.gid))
    })();
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    written
}

fn write_file(directory: &OwnedFd, name: &str, content: &str) -> io::Result<()> {
    let file = openat(
        directory,
        name,
        OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    rustix::io::write(&file, content.as_bytes())?;
    Ok(())
}

/// A filesystem with the device nodes: real ones where we may make them, the host's own bound over files otherwise.
struct DeviceNodes {
    root: OwnedFd,
    bound: Vec<(&'static str, OwnedFd)>,
}

fn device_nodes(slash: &OwnedFd) -> io::Result<DeviceNodes> {
    let root = mount::new_filesystem(
        "tmpfs",
        &[
            FsOption::Text("size", "64k"),
            FsOption::Text("nr_inodes", "32"),
            FsOption::Text("mode", "0755"),
        ],
        NO_SUID,
    )?;
    let mut bound = Vec::new();
    for (name, major, minor) in NODES {
        let mode = Mode::from_raw_mode(0o666);
        if mknodat(&root, name, FileType::CharacterDevice, mode, makedev(major, minor)).is_err() {
            mknodat(&root, name, FileType::RegularFile, mode, 0)?;
            let path = Path::new("dev").join(name);
            bound.push((
                name,
                mount::copy_tree(slash.as_fd(), &path.to_string_lossy(), Depth::One)?,
            ));
        }
    }
    mkdirat(&root, "shm", Mode::from_raw_mode(0o755))?;
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    for (name, target) in links {
        symlinkat(target, &root, name)?;
    }
    Ok(DeviceNodes { root, bound })
}

/// The descriptor of a path of the host, opened without following a link in its last part.
pub(super) fn open_path(path: &str) -> io::Result<OwnedFd> {
    Ok(openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}
