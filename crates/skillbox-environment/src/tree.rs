//! Copies the tree that a build left, and reads a sealed one back. No link is followed, and every count has a bound.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, mkdirat, openat, readlinkat, statat, symlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

/// The deepest directory of an environment. Node nests packages; public lock files reach 20.
const MAX_DEPTH: usize = 64;

/// The time of all files: 1980, the earliest that archives can hold.
const TIMESTAMP: Duration = Duration::from_secs(315_532_800);

/// The bounds of an environment.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// The most files, links and directories.
    pub entries: usize,
    /// The most bytes.
    pub bytes: u64,
}

/// One entry of a sealed tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TreeEntry {
    /// A directory.
    Directory {
        /// The path below the tree.
        path: String,
    },
    /// A file.
    File {
        /// The path below the tree.
        path: String,
        /// The size.
        bytes: u64,
        /// The digest of its content.
        sha256: Digest,
        /// Whether it can be executed.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// The path below the tree.
        path: String,
        /// The target.
        target: String,
    },
}

/// Why a tree cannot be sealed or verified.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A system call failed.
    #[error("cannot {action} {path:?}")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The path below the tree.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The tree is larger than the host allows.
    #[error("the environment exceeds the limit of {limit}")]
    TooLarge {
        /// The limit.
        limit: String,
    },
    /// The tree has an entry that no package needs.
    #[error("{path:?} is {what}, which an environment cannot have")]
    Refused {
        /// The path below the tree.
        path: String,
        /// What it is.
        what: &'static str,
    },
}

/// Copies a tree into an empty directory, with read-only modes and one time, and returns its entries in order.
pub fn copy_sealed(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    limits: TreeLimits,
) -> Result<Vec<TreeEntry>, TreeError> {
    let mut walk = Walk {
        limits,
        bytes: 0,
        entries: Vec::new(),
        copy: true,
    };
    walk.directory(source, Some(target), "", 0)?;
    Ok(walk.entries)
}

/// Reads the entries of a sealed tree, in the order of [`copy_sealed`].
pub fn read_entries(source: BorrowedFd<'_>, limits: TreeLimits) -> Result<Vec<TreeEntry>, TreeError> {
    let mut walk = Walk {
        limits,
        bytes: 0,
        entries: Vec::new(),
        copy: false,
    };
    walk.directory(source, None, "", 0)?;
    Ok(walk.entries)
}

struct Walk {
    limits: TreeLimits,
    bytes: u64,
    entries: Vec<TreeEntry>,
    copy: bool,
}

impl Walk {
    fn directory(
        &mut self,
        source: BorrowedFd<'_>,
        target: Option<BorrowedFd<'_>>,
        path: &str,
        depth: usize,
    ) -> Result<(), TreeError> {
        if depth > MAX_DEPTH {
            return Err(TreeError::TooLarge {
                limit: format!("{MAX_DEPTH} nested directories"),
            });
        }
        for name in sorted_names(source, path)? {
            let below = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            self.count_entry()?;
            let stat = statat(source, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed("inspect", &below))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    self.entries.push(TreeEntry::Directory { path: below.clone() });
                    let child = open_directory(source, &name, &below)?;
                    let copied = target
                        .map(|target| create_directory(target, &name, &below))
                        .transpose()?;
                    self.directory(child.as_fd(), copied.as_ref().map(AsFd::as_fd), &below, depth + 1)?;
                    if let Some(copied) = copied {
                        fchmod(&copied, Mode::from_raw_mode(0o555)).map_err(failed("change the mode of", &below))?;
                        set_time(&File::from(copied)).map_err(io_failed("change the time of", &below))?;
                    }
                }
                FileType::RegularFile => self.file(source, target, &name, below, stat.st_mode & 0o111 != 0)?,
                FileType::Symlink => self.link(source, target, &name, below)?,
                _ => {
                    return Err(TreeError::Refused {
                        path: below,
                        what: "a special file",
                    });
                }
            }
        }
        Ok(())
    }

    fn count_entry(&self) -> Result<(), TreeError> {
        if self.entries.len() < self.limits.entries {
            return Ok(());
        }
        Err(TreeError::TooLarge {
            limit: format!("{} files", self.limits.entries),
        })
    }

    fn file(
        &mut self,
        source: BorrowedFd<'_>,
        target: Option<BorrowedFd<'_>>,
        name: &str,
        path: String,
        executable: bool,
    ) -> Result<(), TreeError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(source, name, flags, Mode::empty()).map_err(failed("open", &path))?;
        let mut reader = File::from(opened);
        let mut copy = target.map(|target| create_file(target, name, &path)).transpose()?;
        let mut hash = Sha256::new();
        let mut bytes = 0_u64;
        let mut buffer = vec![0_u8; 128 << 10];
        loop {
            let count = reader.read(&mut buffer).map_err(io_failed("read", &path))?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
            if self.bytes + bytes > self.limits.bytes {
                return Err(TreeError::TooLarge {
                    limit: format!("{} MiB", self.limits.bytes >> 20),
                });
            }
            hash.update(&buffer[..count]);
            if let Some(copy) = &mut copy {
                copy.write_all(&buffer[..count]).map_err(io_failed("write", &path))?;
            }
        }
        self.bytes += bytes;
        if let Some(copy) = copy {
            let mode = if executable { 0o555 } else { 0o444 };
            fchmod(&copy, Mode::from_raw_mode(mode)).map_err(failed("change the mode of", &path))?;
            set_time(&copy).map_err(io_failed("change the time of", &path))?;
        }
        self.entries.push(TreeEntry::File {
            path,
            bytes,
            sha256: Digest::from_sha256(hash.finalize().into()),
            executable,
        });
        Ok(())
    }

    fn link(
        &mut self,
        source: BorrowedFd<'_>,
        target: Option<BorrowedFd<'_>>,
        name: &str,
        path: String,
    ) -> Result<(), TreeError> {
        let link = readlinkat(source, name, Vec::new()).map_err(failed("read the link", &path))?;
        let Ok(link) = link.into_string() else {
            return Err(TreeError::Refused {
                path,
                what: "a link to a name that is not UTF-8",
            });
        };
        // A build can leave any link. What leads elsewhere would lead to files of the run, or to nothing.
        if self.copy && !stays_inside(&path, &link) && !is_interpreter_link(&path, &link) {
            return Err(TreeError::Refused {
                path,
                what: "a link that leads out of the environment",
            });
        }
        if let Some(target) = target {
            symlinkat(link.as_str(), target, name).map_err(failed("create the link", &path))?;
        }
        self.entries.push(TreeEntry::Link { path, target: link });
        Ok(())
    }
}

/// Whether a relative link stays below the root of its tree.
fn stays_inside(path: &str, link: &str) -> bool {
    if link.starts_with('/') {
        return false;
    }
    let mut depth = path.matches('/').count();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    true
}

/// The links from `bin` to the interpreter of the sandbox, which the build writes.
fn is_interpreter_link(path: &str, link: &str) -> bool {
    path.starts_with("bin/python") && (link.starts_with("/usr/") || link.starts_with("/opt/"))
}

fn sorted_names(directory: BorrowedFd<'_>, path: &str) -> Result<Vec<String>, TreeError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(failed("list", path))? {
        let entry = entry.map_err(failed("list", path))?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        match std::str::from_utf8(name) {
            Ok(name) => names.push(name.to_owned()),
            Err(_) => {
                return Err(TreeError::Refused {
                    path: format!("{path}/{}", String::from_utf8_lossy(name)),
                    what: "a name that is not UTF-8",
                });
            }
        }
    }
    names.sort();
    Ok(names)
}

fn open_directory(parent: BorrowedFd<'_>, name: &str, path: &str) -> Result<OwnedFd, TreeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(failed("open", path))
}

fn create_directory(parent: BorrowedFd<'_>, name: &str, path: &str) -> Result<OwnedFd, TreeError> {
    mkdirat(parent, name, Mode::from_raw_mode(0o755)).map_err(failed("create", path))?;
    open_directory(parent, name, path)
}

fn create_file(parent: BorrowedFd<'_>, name: &str, path: &str) -> Result<File, TreeError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let created = openat(parent, name, flags, Mode::from_raw_mode(0o600)).map_err(failed("create", path))?;
    Ok(created.into())
}

fn set_time(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::UNIX_EPOCH + TIMESTAMP)
}

fn failed(action: &'static str, path: &str) -> impl FnOnce(Errno) -> TreeError {
    let failed = io_failed(action, path);
    move |errno| failed(errno.into())
}

fn io_failed(action: &'static str, path: &str) -> impl FnOnce(io::Error) -> TreeError {
    let path = path.to_owned();
    move |source| TreeError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    const LIMITS: TreeLimits = TreeLimits {
        entries: 100,
        bytes: 1000,
    };

    fn seal(source: &Path, limits: TreeLimits) -> Result<(tempfile::TempDir, Vec<TreeEntry>), TreeError> {
        let target = tempfile::tempdir().unwrap();
        let open = |path: &Path| File::open(path).unwrap();
        let entries = copy_sealed(open(source).as_fd(), open(target.path()).as_fd(), limits)?;
        Ok((target, entries))
    }

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("lib/a")).unwrap();
        std::fs::create_dir(tree.path().join("bin")).unwrap();
        std::fs::write(tree.path().join("lib/a/x.py"), "x = 1\n").unwrap();
        std::fs::write(tree.path().join("bin/tool"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(tree.path().join("bin/tool"), PermissionsExt::from_mode(0o777)).unwrap();
        symlink("../lib/a/x.py", tree.path().join("bin/x")).unwrap();
        symlink("/usr/bin/python3", tree.path().join("bin/python")).unwrap();
        tree
    }

    #[test]
    fn a_copy_is_read_only_and_equal_wherever_it_is_made() {
        let (first, entries) = seal(tree().path(), LIMITS).unwrap();
        let (second, others) = seal(tree().path(), LIMITS).unwrap();
        assert_eq!(entries, others);
        assert_eq!(
            read_entries(File::open(second.path()).unwrap().as_fd(), LIMITS).unwrap(),
            entries
        );
        let stat = |path: &str| std::fs::metadata(first.path().join(path)).unwrap();
        assert_eq!(stat("lib/a/x.py").mode() & 0o7777, 0o444);
        assert_eq!(stat("bin/tool").mode() & 0o7777, 0o555);
        assert_eq!(stat("lib/a").mode() & 0o7777, 0o555);
        assert_eq!(stat("lib/a/x.py").mtime(), stat("lib").mtime());
        make_removable(first.path());
        make_removable(second.path());
    }

    /// Directories without write permission cannot be emptied, except by root.
    fn make_removable(path: &Path) {
        for directory in ["", "lib", "lib/a", "bin"] {
            std::fs::set_permissions(path.join(directory), PermissionsExt::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn links_that_leave_and_special_files_are_refused() {
        for (path, target) in [
            ("lib/x", "/etc/passwd"),
            ("lib/x", "../../x"),
            ("x", ".."),
            ("bin/pythonx", "/etc/passwd"),
            ("lib/python", "/usr/bin/python3"),
            ("lib/a/y", "../../lib/../../x"),
        ] {
            let tree = tree();
            symlink(target, tree.path().join(path)).unwrap();
            let error = seal(tree.path(), LIMITS).unwrap_err();
            assert!(matches!(error, TreeError::Refused { .. }), "{path} {target}: {error}");
        }
        let tree = tree();
        std::os::unix::net::UnixListener::bind(tree.path().join("socket")).unwrap();
        assert!(matches!(seal(tree.path(), LIMITS), Err(TreeError::Refused { .. })));
    }

    #[test]
    fn a_tree_is_bounded() {
        let few = TreeLimits { entries: 3, ..LIMITS };
        assert!(matches!(seal(tree().path(), few), Err(TreeError::TooLarge { .. })));
        let small = TreeLimits { bytes: 10, ..LIMITS };
        assert!(matches!(seal(tree().path(), small), Err(TreeError::TooLarge { .. })));
    }
}
