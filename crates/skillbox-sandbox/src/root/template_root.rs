//! Builds the root of a template: the part of a sandbox's root that depends only on the profile and the host.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat, symlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::target::{open_parent, open_target};
use crate::kernel::mount::{
    self, FsOption, MountAttrFlags, MountCloner, MountScope, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY,
};
use crate::plan::{BindKind, TemplateOp};

/// The attributes of bind mounts from the host.
pub(crate) const HOST_BIND_ATTRIBUTES: MountAttrFlags = READ_ONLY.union(NO_SUID).union(NO_DEVICES);

/// The device nodes that a profile can allow: name, major and minor number.
const DEVICE_NODES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// The name in a profile for a private instance of devpts(5): the directory `/dev/pts` and the link `/dev/ptmx` to it.
const TERMINALS: &str = "pts";

/// The symbolic links of `/dev` to the descriptors of the process that opens them, with their targets.
const DESCRIPTOR_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// A root under construction, in a mount namespace of its own.
pub(crate) struct TemplateRoot {
    root: Option<OwnedFd>,
    mount_cloner: MountCloner,
}

impl TemplateRoot {
    /// Before the first operation: nothing is mounted yet.
    pub fn new(mount_cloner: MountCloner) -> Self {
        Self {
            root: None,
            mount_cloner,
        }
    }

    /// Applies one operation. `source` is the tree that a [`TemplateOp::BindHost`] mounts; none if the host lacks an
    /// optional path.
    pub fn apply(&mut self, op: &TemplateOp, source: Option<OwnedFd>) -> io::Result<()> {
        match op {
            TemplateOp::MakeMountsPrivate => Ok(mount_change(
                "/",
                MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
            )?),
            TemplateOp::NewRoot { bytes, inodes } => self.new_root(*bytes, *inodes),
            TemplateOp::Directory { path } => open_target(self.root()?.as_fd(), path, BindKind::Directory).map(drop),
            TemplateOp::MountPoint { path, kind } => open_target(self.root()?.as_fd(), path, *kind).map(drop),
            TemplateOp::Link { path, target } => {
                let (parent, name) = open_parent(self.root()?.as_fd(), path)?;
                Ok(symlinkat(target.as_str(), &parent, name)?)
            }
            TemplateOp::File { path, content } => self.create_file(path, content),
            TemplateOp::BindHost { path, kind, .. } => match source {
                Some(source) => {
                    let target = open_target(self.root()?.as_fd(), path, *kind)?;
                    self.mount_cloner
                        .attach(source.as_fd(), target.as_fd(), HOST_BIND_ATTRIBUTES)
                }
                None => Ok(()),
            },
            TemplateOp::Devices { names } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let devices = DeviceFilesystem::create(&names)?;
                self.attach(&devices.root, "/dev", BindKind::Directory)?;
                devices.finish()
            }
            TemplateOp::OuterProc => self.attach(&outer_proc()?, "/proc", BindKind::Directory),
            TemplateOp::MakeRootReadOnly => mount::set_attributes(
                self.root()?.as_fd(),
                READ_ONLY | NO_SUID | NO_DEVICES,
                MountScope::Single,
            ),
            TemplateOp::PivotRoot => {
                fchdir(self.root()?)?;
                pivot_root(".", ".")?;
                unmount(".", UnmountFlags::DETACH)?;
                Ok(chdir("/")?)
            }
        }
    }

    fn root(&self) -> io::Result<&OwnedFd> {
        self.root
            .as_ref()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Mounts the new root on top of the old one, which stays the root of this process until the pivot.
    fn new_root(&mut self, bytes: u64, inodes: u64) -> io::Result<()> {
        let root = create_tmpfs(bytes, inodes, NO_SUID | NO_DEVICES)?;
        let slash = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        mount::attach(root.as_fd(), slash.as_fd())?;
        self.root = Some(root);
        Ok(())
    }

    fn attach(&self, mount: &OwnedFd, path: &str, kind: BindKind) -> io::Result<()> {
        let target = open_target(self.root()?.as_fd(), path, kind)?;
        mount::attach(mount.as_fd(), target.as_fd())
    }

    fn create_file(&self, path: &str, content: &str) -> io::Result<()> {
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

/// Clones the mount of the outer `/proc`. A mounted procfs without mounts on it is the condition under which the kernel
/// lets a child mount a fresh one. In a user namespace the mounts on `/proc` are locked, and can only be cloned
/// together with it.
fn outer_proc() -> io::Result<OwnedFd> {
    match mount::clone_tree(CWD, "/proc", MountScope::Single) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            mount::clone_tree(CWD, "/proc", MountScope::Recursive)
        }
        copy => copy,
    }
}

/// Creates a small, detached tmpfs.
pub(super) fn create_tmpfs(bytes: u64, inodes: u64, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let (size, inodes) = (bytes.to_string(), inodes.to_string());
    let options = [
        FsOption("size", &size),
        FsOption("nr_inodes", &inodes),
        FsOption("mode", "0755"),
    ];
    mount::new_filesystem("tmpfs", &options, attributes)
}

/// A tmpfs with device nodes: new nodes where the process may create them, and bind mounts of the host's nodes
/// otherwise.
pub(crate) struct DeviceFilesystem {
    pub root: OwnedFd,
    binds: Vec<(String, OwnedFd)>,
}

impl DeviceFilesystem {
    /// The names of all nodes.
    pub const ALL_NAMES: [&'static str; 6] = [
        DEVICE_NODES[0].0,
        DEVICE_NODES[1].0,
        DEVICE_NODES[2].0,
        DEVICE_NODES[3].0,
        DEVICE_NODES[4].0,
        DEVICE_NODES[5].0,
    ];

    /// Creates the nodes, the links to descriptors, and the mount point of `/dev/shm`.
    pub fn create(names: &[&str]) -> io::Result<Self> {
        let root = create_tmpfs(64 << 10, 32, NO_SUID)?;
        let mut binds = Vec::new();
        for name in names {
            if *name == TERMINALS {
                mkdirat(&root, TERMINALS, Mode::from_raw_mode(0o755))?;
                symlinkat("pts/ptmx", &root, "ptmx")?;
                continue;
            }
            let node = DEVICE_NODES.iter().find(|(known, ..)| known == name);
            let (_, major, minor) = node.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
            let mode = Mode::from_raw_mode(0o666);
            match mknodat(&root, *name, FileType::CharacterDevice, mode, makedev(*major, *minor)) {
                // Device nodes need CAP_MKNOD in the initial user namespace.
                Err(rustix::io::Errno::PERM) => {
                    let node = match mount::clone_tree(CWD, &format!("/dev/{name}"), MountScope::Single) {
                        // A container that skillbox runs in may have no /dev/tty, and few scripts need it.
                        Err(error) if *name == "tty" && error.kind() == io::ErrorKind::NotFound => continue,
                        node => node?,
                    };
                    mknodat(&root, *name, FileType::RegularFile, mode, 0)?;
                    binds.push(((*name).to_owned(), node));
                }
                created => created?,
            }
        }
        mkdirat(&root, "shm", Mode::from_raw_mode(0o755))?;
        for (name, target) in DESCRIPTOR_LINKS {
            symlinkat(target, &root, name)?;
        }
        Ok(Self { root, binds })
    }

    /// Bind-mounts the nodes that could not be created, and makes the filesystem read-only. It must be attached.
    pub fn finish(self) -> io::Result<()> {
        for (name, node) in &self.binds {
            let target = openat(
                &self.root,
                name.as_str(),
                OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
                Mode::empty(),
            )?;
            mount::attach(node.as_fd(), target.as_fd())?;
        }
        mount::set_attributes(self.root.as_fd(), READ_ONLY | NO_SUID | NO_EXEC, MountScope::Recursive)
    }
}
