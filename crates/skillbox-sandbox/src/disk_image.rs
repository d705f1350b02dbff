//! File systems in files of the host, with hard limits: ext4 on a loop device.
//!
//! They limit what outlives a process, as the workspaces of sessions do. The kernel counts everything in them, files
//! without a name and space without content included. No mount is visible in the mount namespace of the host: each user
//! of an image gets a detached mount, and the kernel releases device and file system with the last of them, also if all
//! processes are killed. Measured: 20 ms to create an image, 4 ms to mount it, 0.1 ms while it is mounted.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::host::UidGid;
use crate::kernel::loop_device::LoopDevice;
use crate::kernel::mount::{self, FsOption, NO_DEVICES, NO_SUID};

const MIB: u64 = 1 << 20;
const INODE_BYTES: u64 = 256;
/// ext4 keeps eleven inodes for its own records.
const RESERVED_INODES: u64 = 16;
/// The smallest journal of ext4.
const JOURNAL_BYTES: u64 = 4 * MIB;
/// ext4 keeps two percent free for its own records, at most this.
const MAX_RESERVED_BYTES: u64 = 16 * MIB;
/// Directories that hold mkfs.ext4 and are often not in `PATH`.
const PROGRAM_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"];

/// Why this host has no file systems in files. None if it has: skillbox runs as root, with loop devices and mkfs.ext4.
pub fn disk_image_obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can mount a file system of a fixed size".to_owned());
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/loop-control") {
        return Some(format!("loop devices cannot be used: {error}"));
    }
    find_mkfs().is_none().then(|| "mkfs.ext4 is not installed".to_owned())
}

fn find_mkfs() -> Option<PathBuf> {
    let candidates = PROGRAM_DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join("mkfs.ext4"));
    candidates.into_iter().find(|path| path.exists())
}

/// A mounted image. While one exists, further mounts of the same image are cheap.
#[derive(Debug)]
pub struct DiskImage {
    device: LoopDevice,
    /// Keeps the file system mounted.
    _mount: OwnedFd,
}

impl DiskImage {
    /// Creates the file of an image, sparse and with an empty file system that has room for this many bytes and
    /// inodes. Its root directory belongs to `owner`.
    pub fn create(path: &Path, bytes: u64, inodes: u64, owner: UidGid) -> io::Result<()> {
        let program = find_mkfs().ok_or_else(|| io::Error::other("mkfs.ext4 is not installed"))?;
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        options.set_len(image_bytes(bytes, inodes))?;
        #[expect(
            clippy::disallowed_methods,
            reason = "mkfs.ext4 is a program of the host, with arguments that no request chooses"
        )]
        let output = Command::new(program)
            .env_clear()
            .args(["-q", "-F", "-b", "4096", "-m", "0", "-I"])
            .arg(INODE_BYTES.to_string())
            .arg("-N")
            .arg(inodes.saturating_add(RESERVED_INODES).to_string())
            .args(["-J", "size=4", "-O", "^resize_inode"])
            .arg("-E")
            .arg(format!(
                "nodiscard,lazy_itable_init=1,lazy_journal_init=1,root_owner={}:{}",
                owner.uid, owner.gid
            ))
            .arg(path)
            .stdin(Stdio::null())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(io::Error::other(format!("mkfs.ext4 failed: {message}")))
    }

    /// Mounts the image, or joins those who have it mounted.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // Others must not attach the same file at the same time. The lock ends with this function.
        file.lock()?;
        let device = LoopDevice::attach(&file)?;
        let mount = mount_device(&device)?;
        remove_lost_and_found(&mount);
        Ok(Self { device, _mount: mount })
    }

    /// A detached mount of the whole file system, which can be attached once.
    pub fn mount(&self) -> io::Result<OwnedFd> {
        mount_device(&self.device)
    }
}

/// mkfs.ext4 creates a directory for repairs, which would look like a file of a script. Repairs create it again.
fn remove_lost_and_found(mount: &OwnedFd) {
    let _absent_or_used = rustix::fs::unlinkat(mount, "lost+found", rustix::fs::AtFlags::REMOVEDIR);
}

/// A new mount of the file system on a device. The kernel reuses the file system if it is mounted already.
fn mount_device(device: &LoopDevice) -> io::Result<OwnedFd> {
    let options = [FsOption("source", device.path()), FsOption("errors", "remount-ro")];
    // Freed space returns to the host, and the kernel does not fill unused tables in the background.
    let flags = ["discard", "noinit_itable"];
    mount::new_filesystem_with_flags("ext4", &options, &flags, NO_SUID | NO_DEVICES)
}

/// The size of an image in which this many bytes can be used.
fn image_bytes(bytes: u64, inodes: u64) -> u64 {
    let used = bytes
        .saturating_add(inodes.saturating_mul(INODE_BYTES))
        .saturating_add(JOURNAL_BYTES + MIB);
    // Bitmaps and group descriptors take less than a thousandth.
    let used = used.saturating_add(used / 1000);
    let total = used.saturating_add((used / 49).min(MAX_RESERVED_BYTES));
    total.next_multiple_of(4096)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn in_mount(mount: &OwnedFd, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", mount.as_raw_fd()))
    }

    #[test]
    fn an_image_holds_what_it_was_created_for_and_no_more() {
        if let Some(obstacle) = disk_image_obstacle() {
            println!("skipped: {obstacle}");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        for (bytes, inodes) in [(8 * MIB, 100), (64 * MIB, 5000), (512 * MIB, 100_000)] {
            let path = directory.path().join(bytes.to_string());
            let owner = UidGid {
                uid: 12_345,
                gid: 12_346,
            };
            DiskImage::create(&path, bytes, inodes, owner).unwrap();
            assert!(
                fs::metadata(&path).unwrap().blocks() * 512 < 8 * MIB,
                "the image is sparse"
            );
            let image = DiskImage::open(&path).unwrap();
            let mount = image.mount().unwrap();
            let root = fs::metadata(in_mount(&mount, ".")).unwrap();
            assert_eq!((root.uid(), root.gid()), (owner.uid, owner.gid));
            assert_eq!(fs::read_dir(in_mount(&mount, ".")).unwrap().count(), 0);
            let space = rustix::fs::fstatvfs(&mount).unwrap();
            let free = space.f_bavail * space.f_frsize;
            assert!((bytes..bytes + bytes / 20 + 2 * MIB).contains(&free), "{bytes}: {free}");
            assert!(
                (inodes..inodes * 11 / 10 + 200).contains(&space.f_favail),
                "{inodes}: {}",
                space.f_favail
            );
        }
    }

    #[test]
    fn all_users_of_an_image_share_one_file_system() {
        if let Some(obstacle) = disk_image_obstacle() {
            println!("skipped: {obstacle}");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        DiskImage::create(&path, 8 * MIB, 100, UidGid { uid: 0, gid: 0 }).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for round in 0..8 {
                        let image = DiskImage::open(path).unwrap();
                        let mount = image.mount().unwrap();
                        fs::write(in_mount(&mount, &format!("{number}-{round}")), "x").unwrap();
                    }
                });
            }
        });
        let image = DiskImage::open(&path).unwrap();
        let mount = image.mount().unwrap();
        assert_eq!(fs::read_dir(in_mount(&mount, ".")).unwrap().count(), 64);
    }
}
