//! Attaches a file to a loop device (loop(4)).
#![expect(unsafe_code, reason = "no crate wraps the ioctls of loop devices")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;

// From `linux/loop.h`.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
/// The kernel detaches the file when the last user of the device is gone.
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// The number of times that another process may attach its file to the device that was free.
const ATTEMPTS: u32 = 16;

/// The kernel's `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// The kernel's `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const EMPTY_INFO: LoopInfo = LoopInfo {
    device: 0,
    inode: 0,
    rdevice: 0,
    offset: 0,
    size_limit: 0,
    number: 0,
    encrypt_type: 0,
    encrypt_key_size: 0,
    flags: 0,
    file_name: [0; 64],
    crypt_name: [0; 64],
    encrypt_key: [0; 32],
    init: [0; 2],
};

/// A loop device with a file attached. The file is detached when this value and every mount of the device are gone.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    path: String,
    _open: File,
}

impl LoopDevice {
    /// The device that the file is attached to. Attaches it if it is not attached yet: two devices for one file would
    /// be two independent file systems on the same bytes. The caller must hold a lock that keeps others from attaching
    /// the same file.
    pub fn attach(image: &File) -> io::Result<Self> {
        if let Some(attached) = Self::find(image)? {
            return Ok(attached);
        }
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        for _ in 0..ATTEMPTS {
            let number = ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE, 0)?;
            let path = format!("/dev/loop{number}");
            let device = OpenOptions::new().read(true).write(true).open(&path)?;
            let config = LoopConfig {
                fd: u32::try_from(image.as_raw_fd()).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?,
                block_size: 0,
                info: LoopInfo {
                    flags: LO_FLAGS_AUTOCLEAR,
                    ..EMPTY_INFO
                },
                reserved: [0; 8],
            };
            match ioctl(device.as_raw_fd(), LOOP_CONFIGURE, std::ptr::from_ref(&config) as usize) {
                Ok(_) => return Ok(Self { path, _open: device }),
                // Another process took the device.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// The device that the file is attached to already, by this or another process.
    fn find(image: &File) -> io::Result<Option<Self>> {
        let wanted = image.metadata()?;
        for entry in fs::read_dir("/sys/block")?.flatten() {
            let name = entry.file_name();
            let is_bound = name.as_encoded_bytes().starts_with(b"loop") && entry.path().join("loop").exists();
            if !is_bound {
                continue;
            }
            let path = format!("/dev/{}", name.to_string_lossy());
            // Opening the devices of others for writing would make udev examine them.
            let Ok(device) = File::open(&path) else {
                continue;
            };
            let mut info = EMPTY_INFO;
            // The device may have lost its file since it was listed.
            let answered = ioctl(
                device.as_raw_fd(),
                LOOP_GET_STATUS64,
                std::ptr::from_mut(&mut info) as usize,
            );
            if answered.is_ok() && (info.device, info.inode) == (wanted.dev(), wanted.ino()) {
                return Ok(Some(Self { path, _open: device }));
            }
        }
        Ok(None)
    }

    /// The path of the device.
    pub fn path(&self) -> &str {
        &self.path
    }
}

fn ioctl(descriptor: RawFd, request: libc::Ioctl, argument: usize) -> io::Result<libc::c_int> {
    // SAFETY: each request takes an integer or a pointer to the structure above that `linux/loop.h` names for it. The
    // caller passes it, and it outlives the call.
    let result = unsafe { libc::ioctl(descriptor, request, argument) };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
