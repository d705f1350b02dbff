//! The certificate authorities of a run, as files that only this run sees.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use skillbox_egress::RunCredentials;
use tempfile::TempDir;

use crate::network_access::CERTIFICATE_BUNDLE;

/// The directory with the authorities of a run. It is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct Certificates {
    opened: OwnedFd,
    directory: TempDir,
}

impl Certificates {
    /// Writes the authorities of a run; none if it needs none of its own.
    pub fn write(credentials: &RunCredentials) -> io::Result<Option<Self>> {
        let Some(bundle) = credentials.certificate_bundle() else {
            return Ok(None);
        };
        let directory = tempfile::Builder::new().prefix("skillbox-tls-").tempdir()?;
        let path = directory.path().join(CERTIFICATE_BUNDLE);
        std::fs::write(&path, bundle)?;
        // The script is another user, and the authorities are public.
        std::fs::set_permissions(&path, Permissions::from_mode(0o444))?;
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        let opened = File::open(directory.path())?.into();
        Ok(Some(Self { opened, directory }))
    }

    /// The directory, to mount it.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }

    /// Removes the files, and reports if that fails.
    pub fn remove(self) -> io::Result<()> {
        self.directory.close()
    }
}
