//! The script's root: every mount of it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, symlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};
use rustix::thread::{
    CapabilitiesSecureBits, LinkNameSpaceType, move_into_link_name_space, set_capabilities_secure_bits,
};

use super::Child;
use crate::kernel::mount::{self, Depth, FsOption, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use crate::plan::{BindKind, Op};
use crate::spawner::{DEVICES, ROOT_MOUNT_POINT};

impl Child<'_> {
    pub(super) fn build_root(&mut self, index: usize, op: &Op) -> io::Result<()> {
        match op {
            Op::PrivateMounts => Ok(mount_change(
                "/",
                MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
            )?),
            Op::NewRoot { bytes, inodes } => self.new_root(*bytes, *inodes),
            Op::Directory { path } => make(self.root()?, path, BindKind::Directory).map(drop),
            Op::Link { path, target } => {
                let (parent, name) = parent_of(self.root()?, path)?;
                Ok(symlinkat(target.as_str(), &parent, name)?)
            }
            Op::File { path, content } => self.write_file(path, content),
            Op::BindHost { path, kind, .. } => match self.belongings.mounts[index].take() {
                Some(mount) => self.attach(&mount, path, *kind),
                // The plan calls it optional, and the host lost it.
                None => Ok(()),
            },
            Op::Devices { .. } => {
                let devices = self.mount_of(index)?;
                self.attach(&devices, "/dev", BindKind::Directory)
            }
            Op::SharedMemory { bytes } => {
                let size = bytes.to_string();
                let options = [FsOption::Text("size", &size), FsOption::Text("mode", "1777")];
                let shm = mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES | NO_EXEC)?;
                self.attach(&shm, "/dev/shm", BindKind::Directory)
            }
            Op::Proc => {
                let options = [FsOption::Text("hidepid", "invisible")];
                let proc = mount::new_filesystem("proc", &options, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)?;
                self.attach(&proc, "/proc", BindKind::Directory)
            }
            Op::Mask { path } => self.mask(path),
            Op::EnterRoot => {
                fchdir(self.root()?)?;
                pivot_root(".", ".")?;
                unmount(".", UnmountFlags::DETACH)?;
                Ok(chdir("/")?)
            }
            Op::MountWorkspace { target, .. } => {
                let workspace = self.mount_of(index)?;
                self.attach(&workspace, target, BindKind::Directory)
            }
            Op::BindDescriptor { target, kind, .. } => {
                let bind = self.mount_of(index)?;
                self.attach(&bind, target, *kind)
            }
            Op::SealRoot => mount::set_attributes(self.root()?.as_fd(), READ_ONLY | NO_SUID | NO_DEVICES, Depth::One),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    fn root(&self) -> io::Result<&OwnedFd> {
        self.root
            .as_ref()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn mount_of(&mut self, index: usize) -> io::Result<OwnedFd> {
        self.belongings.mounts[index]
            .take()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    fn new_root(&mut self, bytes: u64, inodes: u64) -> io::Result<()> {
        let (size, inodes) = (bytes.to_string(), inodes.to_string());
        let options = [
            FsOption::Text("size", &size),
            FsOption::Text("nr_inodes", &inodes),
            FsOption::Text("mode", "0755"),
        ];
        let root = mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES)?;
        let point = openat(CWD, ROOT_MOUNT_POINT, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        mount::attach(root.as_fd(), point.as_fd())?;
        self.root = Some(root);
        Ok(())
    }

    fn attach(&self, mount: &OwnedFd, path: &str, kind: BindKind) -> io::Result<()> {
        let target = make(self.root()?, path, kind)?;
        mount::attach(mount.as_fd(), target.as_fd())
    }

    fn write_file(&self, path: &str, content: &str) -> io::Result<()> {
        let (parent, name) = parent_of(self.root()?, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(&parent, name, flags, Mode::from_raw_mode(0o444))?;
        let mut rest = content.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = &rest[written..];
        }
        Ok(())
    }

    /// Covers a file with the empty device. A file that this kernel does not have needs no cover.
    fn mask(&self, path: &str) -> io::Result<()> {
        let below = path.trim_start_matches('/');
        let target = match openat(
            self.root()?,
            below,
            OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        ) {
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            target => target?,
        };
        let null = mount::copy_tree(CWD, &format!("{DEVICES}/null"), Depth::One)?;
        mount::attach(null.as_fd(), target.as_fd())
    }

    /// A run without mounts of its own sees those of the host.
    pub(super) fn enter_host_mounts(&mut self, index: usize) -> io::Result<()> {
        // The spawner's way of keeping capabilities while ids change is not for the command.
        let _ = set_capabilities_secure_bits(CapabilitiesSecureBits::empty());
        match self.belongings.mounts[index].take() {
            Some(host) => Ok(move_into_link_name_space(host.as_fd(), Some(LinkNameSpaceType::Mount))?),
            // The spawner has no stage of its own and never left.
            None => Ok(()),
        }
    }
}

/// The directory that holds a path's last part, made as needed.
fn parent_of<'a>(root: &OwnedFd, path: &'a str) -> io::Result<(OwnedFd, &'a str)> {
    let (parent, name) = path
        .rsplit_once('/')
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok((make(root, parent, BindKind::Directory)?, name))
}

/// Opens a path below a root to mount on it, making what is missing. A link anywhere on the way is refused: the
/// workspace of a session holds what earlier scripts left there.
fn make(root: &OwnedFd, path: &str, kind: BindKind) -> io::Result<OwnedFd> {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    let mut here: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let above = here.as_ref().unwrap_or(root);
        let wanted = if parts.peek().is_some() {
            BindKind::Directory
        } else {
            kind
        };
        let next = step_into(above, part, wanted)?;
        here = Some(next);
    }
    match here {
        Some(here) => Ok(here),
        None => root.try_clone(),
    }
}

fn step_into(above: &OwnedFd, part: &str, kind: BindKind) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let found = match openat(above, part, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            match kind {
                BindKind::Directory => mkdirat(above, part, Mode::from_raw_mode(0o755))?,
                BindKind::File => {
                    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                    openat(above, part, create, Mode::from_raw_mode(0o644)).map(drop)?;
                }
            }
            openat(above, part, flags, Mode::empty())?
        }
        found => found?,
    };
    let is = FileType::from_raw_mode(fstat(&found)?.st_mode);
    match (kind, is) {
        (BindKind::Directory, FileType::Directory) | (BindKind::File, FileType::RegularFile) => Ok(found),
        (_, FileType::Symlink) => Err(io::Error::from_raw_os_error(libc::ELOOP)),
        (BindKind::Directory, _) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        (BindKind::File, _) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
    }
}
