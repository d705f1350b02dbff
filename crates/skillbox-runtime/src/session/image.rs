//! The workspaces of sessions that are file systems of their own.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use skillbox_executor::workspace::{Owner, Workspace};
use skillbox_model::Limits;
use skillbox_sandbox::{DiskImage, UidGid, disk_image_obstacle};

/// Permissions of the root of a workspace.
pub(super) const WORKSPACE_MODE: u32 = 0o755;
/// The number of images that stay mounted between runs.
const MAX_MOUNTED: usize = 32;
/// How long an image stays mounted without a use. Mounting takes milliseconds.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The suffix of an image that is being created.
const UNFINISHED: &str = "new";

/// Creates and mounts the images of the sessions of one process.
#[derive(Debug)]
pub(super) struct SessionImages {
    owner: Owner,
    mounted: Mutex<Vec<MountedImage>>,
    /// Set when this host turns out to be unable to create images.
    is_disabled: AtomicBool,
}

#[derive(Debug)]
struct MountedImage {
    path: PathBuf,
    image: Arc<DiskImage>,
    last_use: Instant,
}

impl SessionImages {
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            mounted: Mutex::default(),
            is_disabled: AtomicBool::new(false),
        }
    }

    /// Creates an image for these limits. Returns false if this host has none, so that a directory has to do.
    pub fn create(&self, path: &Path, limits: &Limits) -> bool {
        if self.is_disabled.load(Ordering::Relaxed) {
            return false;
        }
        let reason = disk_image_obstacle().or_else(|| {
            let failure = self.try_create(path, limits).err()?;
            Some(failure.to_string())
        });
        if let Some(reason) = &reason {
            tracing::info!(%reason, "the workspaces of sessions are directories, whose size is checked periodically");
            self.is_disabled.store(true, Ordering::Relaxed);
        }
        reason.is_none()
    }

    fn try_create(&self, path: &Path, limits: &Limits) -> io::Result<()> {
        let unfinished = path.with_extension(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let owner = UidGid {
            uid: self.owner.uid,
            gid: self.owner.gid,
        };
        let created = DiskImage::create(&unfinished, limits.workspace.bytes(), limits.workspace_inodes, owner)
            .and_then(|()| DiskImage::open(&unfinished))
            .and_then(|image| {
                fs::rename(&unfinished, path)?;
                self.keep_mounted(path, Arc::new(image));
                Ok(())
            });
        if created.is_err() {
            let _unfinished_stays = fs::remove_file(&unfinished);
        }
        created
    }

    /// Opens the workspace in an image that exists.
    pub fn open(&self, path: &Path) -> io::Result<Workspace> {
        let image = match self.find_mounted(path) {
            Some(image) => image,
            None => {
                let image = Arc::new(DiskImage::open(path)?);
                self.keep_mounted(path, Arc::clone(&image));
                image
            }
        };
        let workspace = Workspace::in_image(image.mount()?, Some(self.owner))?;
        repair_mode(workspace.root())?;
        Ok(workspace)
    }

    /// Unmounts an image, unless a run uses it.
    pub fn release(&self, path: &Path) {
        self.retain(|mounted| mounted.path != path);
    }

    fn find_mounted(&self, path: &Path) -> Option<Arc<DiskImage>> {
        self.retain(|mounted| mounted.last_use.elapsed() < IDLE_TIME || mounted.path == path);
        let mut mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
        let found = mounted.iter_mut().find(|mounted| mounted.path == path)?;
        found.last_use = Instant::now();
        Some(Arc::clone(&found.image))
    }

    fn keep_mounted(&self, path: &Path, image: Arc<DiskImage>) {
        let mut mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = if mounted.len() < MAX_MOUNTED {
            None
        } else {
            let indices = 0..mounted.len();
            let oldest = indices.min_by_key(|index| mounted[*index].last_use);
            oldest.map(|index| mounted.swap_remove(index))
        };
        mounted.push(MountedImage {
            path: path.to_owned(),
            image,
            last_use: Instant::now(),
        });
        // Unmounting writes to the disk, so it happens outside the lock.
        drop(mounted);
        drop(oldest);
    }

    fn retain(&self, is_kept: impl Fn(&MountedImage) -> bool) {
        let mut mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, released): (Vec<_>, Vec<_>) = mounted.drain(..).partition(is_kept);
        *mounted = kept;
        drop(mounted);
        drop(released);
    }
}

/// Restores the permissions of the workspace, which the script of an earlier run can have changed.
fn repair_mode(root: BorrowedFd<'_>) -> io::Result<()> {
    if rustix::fs::fstat(root)?.st_mode & 0o7777 != WORKSPACE_MODE {
        rustix::fs::fchmod(root, Mode::from_raw_mode(WORKSPACE_MODE))?;
    }
    Ok(())
}
