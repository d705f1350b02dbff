//! The part of the root that depends on the profile and the host alone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat, symlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::target::{open_parent, open_target};
use crate::kernel::mount::{self, Copying, Depth, FsOption, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use crate::plan::{BindKind, Op};

/// What the host's own trees are mounted with.
pub(crate) const OF_HOST: u64 = READ_ONLY | NO_SUID | NO_DEVICES;

/// Names and numbers of the device nodes that a script can have.
const NODES: [(&str, u32, u32); 5] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
];

/// Links of every process to its own descriptors.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// A skeleton while it is built, in a mount namespace of its own.
pub(crate) struct Skeleton {
    root: Option<OwnedFd>,
    copying: Copying,
}

impl Skeleton {
    /// Nothing yet.
    pub fn new(copying: Copying) -> Self {
        Self { root: None, copying }
    }

    /// Does one step. `source` is what the step mounts; a step whose source the host lost has none.
    pub fn apply(&mut self, op: &Op, source: Option<OwnedFd>) -> io::Result<()> {
        match op {
            Op::PrivateMounts => Ok(mount_change(
                "/",
                MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
            )?),
            Op::NewRoot { bytes, inodes } => self.new_root(*bytes, *inodes),
            Op::Directory { path } => open_target(self.root()?.as_fd(), path, BindKind::Directory).map(drop),
            Op::MountPoint { path, kind } => open_target(self.root()?.as_fd(), path, *kind).map(drop),
            Op::Link { path, target } => {
                let (parent, name) = open_parent(self.root()?.as_fd(), path)?;
                Ok(symlinkat(target.as_str(), &parent, name)?)
            }
            Op::File { path, content } => self.file(path, content),
            Op::BindHost { path, kind, .. } => match source {
                Some(source) => {
                    let target = open_target(self.root()?.as_fd(), path, *kind)?;
                    self.copying.attach(source.as_fd(), target.as_fd(), OF_HOST)
                }
                None => Ok(()),
            },
            Op::Devices { names } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let devices = Devices::make(&names)?;
                self.attach(&devices.root, "/dev", BindKind::Directory)?;
                devices.finish()
            }
            Op::OuterProc => self.attach(&outer_proc()?, "/proc", BindKind::Directory),
            Op::SealRoot => mount::set_attributes(self.root()?.as_fd(), READ_ONLY | NO_SUID | NO_DEVICES, Depth::One),
            Op::EnterRoot => {
                fchdir(self.root()?)?;
                pivot_root(".", ".")?;
                unmount(".", UnmountFlags::DETACH)?;
                Ok(chdir("/")?)
            }
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    fn root(&self) -> io::Result<&OwnedFd> {
        self.root
            .as_ref()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Attaches the new root over the old one, which stays in use until the pivot.
    fn new_root(&mut self, bytes: u64, inodes: u64) -> io::Result<()> {
        let root = small_filesystem(bytes, inodes, NO_SUID | NO_DEVICES)?;
        let slash = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        mount::attach(root.as_fd(), slash.as_fd())?;
        self.root = Some(root);
        Ok(())
    }

    fn attach(&self, mount: &OwnedFd, path: &str, kind: BindKind) -> io::Result<()> {
        let target = open_target(self.root()?.as_fd(), path, kind)?;
        mount::attach(mount.as_fd(), target.as_fd())
    }

    fn file(&self, path: &str, content: &str) -> io::Result<()> {
        let (parent, name) = open_parent(self.root()?.as_fd(), path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(&parent, name, flags, Mode::from_raw_mode(0o444))?;
        let mut rest = content.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = &rest[written..];
        }
        Ok(())
    }
}

/// A copy of the outer `/proc` without what is mounted on it, so that the kernel lets a child mount a fresh one. In a
/// user namespace such mounts are locked together, and copied as a whole.
fn outer_proc() -> io::Result<OwnedFd> {
    match mount::copy_tree(CWD, "/proc", Depth::One) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => mount::copy_tree(CWD, "/proc", Depth::Whole),
        copy => copy,
    }
}

/// A small filesystem in memory, detached.
pub(super) fn small_filesystem(bytes: u64, inodes: u64, attributes: u64) -> io::Result<OwnedFd> {
    let (size, inodes) = (bytes.to_string(), inodes.to_string());
    let options = [
        FsOption("size", &size),
        FsOption("nr_inodes", &inodes),
        FsOption("mode", "0755"),
    ];
    mount::new_filesystem("tmpfs", &options, attributes)
}

/// A filesystem with device nodes: real ones where we may make them, those of the current root bound otherwise.
pub(crate) struct Devices {
    pub root: OwnedFd,
    bound: Vec<(String, OwnedFd)>,
}

impl Devices {
    /// Every node that there is.
    pub const ALL: [&'static str; 5] = [NODES[0].0, NODES[1].0, NODES[2].0, NODES[3].0, NODES[4].0];

    /// Makes the nodes, the links of every process to its own descriptors, and the place for shared memory.
    pub fn make(names: &[&str]) -> io::Result<Self> {
        let root = small_filesystem(64 << 10, 32, NO_SUID)?;
        let mut bound = Vec::new();
        for name in names {
            let node = NODES.iter().find(|(known, ..)| known == name);
            let (_, major, minor) = node.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
            let mode = Mode::from_raw_mode(0o666);
            if mknodat(&root, *name, FileType::CharacterDevice, mode, makedev(*major, *minor)).is_err() {
                mknodat(&root, *name, FileType::RegularFile, mode, 0)?;
                bound.push((
                    (*name).to_owned(),
                    mount::copy_tree(CWD, &format!("/dev/{name}"), Depth::One)?,
                ));
            }
        }
        mkdirat(&root, "shm", Mode::from_raw_mode(0o755))?;
        for (name, target) in LINKS {
            symlinkat(target, &root, name)?;
        }
        Ok(Self { root, bound })
    }

    /// Binds what could not be made and makes all of it read-only; only once the filesystem is attached.
    pub fn finish(self) -> io::Result<()> {
        for (name, node) in &self.bound {
            let target = openat(
                &self.root,
                name.as_str(),
                OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
                Mode::empty(),
            )?;
            mount::attach(node.as_fd(), target.as_fd())?;
        }
        mount::set_attributes(self.root.as_fd(), READ_ONLY | NO_SUID | NO_EXEC, Depth::Whole)
    }
}
