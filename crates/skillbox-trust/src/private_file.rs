//! Files that only this user may write, replaced atomically.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use skillbox_model::ErrorCode;

use crate::TrustError;

/// Creates a directory that only this user can access, or checks that no other user can change an existing one.
pub(crate) fn create_private_dir(path: &Path) -> Result<(), TrustError> {
    // Directories above are the state directory, which other users may enter.
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(TrustError::io("create", parent))?;
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(TrustError::io("create", path))?;
    let metadata = fs::metadata(path).map_err(TrustError::io("read the mode of", path))?;
    check_owner(path, &metadata)?;
    if metadata.mode() & 0o022 != 0 {
        return Err(TrustError::NotPrivate {
            path: path.to_owned(),
            problem: format!(
                "its mode {:o} lets other users change it; run `chmod go-w` on it",
                metadata.mode() & 0o777
            ),
        });
    }
    Ok(())
}

/// Refuses a file of another user. Files of root are accepted, because root can change everything anyway.
pub(crate) fn check_owner(path: &Path, metadata: &fs::Metadata) -> Result<(), TrustError> {
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        return Err(TrustError::NotPrivate {
            path: path.to_owned(),
            problem: format!("it belongs to user {}, not to {own}", metadata.uid()),
        });
    }
    Ok(())
}

/// Replaces a file in one step. After a crash, the file has either its old or its new content.
pub(crate) fn replace_file(path: &Path, content: &[u8], mode: u32) -> Result<(), TrustError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(".partial-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
        .tempfile_in(directory)
        .map_err(TrustError::io("create a file in", directory))?;
    let file = temporary.as_file_mut();
    file.write_all(content)
        .and_then(|()| file.sync_all())
        .map_err(TrustError::io("write", path))?;
    temporary
        .persist(path)
        .map_err(|error| TrustError::io("replace", path)(error.error))?;
    sync_dir(directory)
}

pub(crate) fn sync_dir(directory: &Path) -> Result<(), TrustError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(TrustError::io("sync", directory))
}

/// Reads a regular file of limited size; `None` if it does not exist. A link as the last component is refused.
pub(crate) fn read_limited(path: &Path, max_bytes: u64, code: ErrorCode) -> Result<Option<Vec<u8>>, TrustError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TrustError::io("open", path)(error)),
    };
    let malformed = |problem: String| TrustError::Malformed {
        code,
        path: path.to_owned(),
        line: None,
        problem,
    };
    if !file.metadata().map_err(TrustError::io("read", path))?.is_file() {
        return Err(malformed("it is not a regular file".to_owned()));
    }
    let mut content = Vec::new();
    file.take(max_bytes + 1)
        .read_to_end(&mut content)
        .map_err(TrustError::io("read", path))?;
    if content.len() as u64 > max_bytes {
        return Err(malformed(format!("it has more than {max_bytes} bytes")));
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/trust");
        create_private_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = create_private_dir(&path).unwrap_err();
        assert!(error.to_string().contains("chmod go-w"), "{error}");
    }

    #[test]
    fn files_are_replaced_and_read_within_their_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert!(read_limited(&path, 10, ErrorCode::Storage).unwrap().is_none());
        replace_file(&path, b"one", 0o600).unwrap();
        replace_file(&path, b"second", 0o600).unwrap();
        assert_eq!(read_limited(&path, 6, ErrorCode::Storage).unwrap().unwrap(), b"second");
        assert!(read_limited(&path, 5, ErrorCode::Storage).is_err());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no partial file remains"
        );

        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read_limited(&link, 100, ErrorCode::Storage).is_err());
    }
}
