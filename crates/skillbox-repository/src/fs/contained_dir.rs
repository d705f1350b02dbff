//! Opens files beneath a directory descriptor, so that no link can escape the directory.
//!
//! `openat2` with `RESOLVE_BENEATH` does this in one call and without races. Where that call is missing (Linux before
//! 5.6, some sandboxes), the path is walked one component at a time: every component is opened without following
//! links, link targets are read and walked in turn, and `..` returns to the descriptor that was opened before. Both
//! ways reject absolute links, even those that point back inside: skills are moved and copied, and such a link would
//! then point outside.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

/// The maximum number of links in one path; the kernel has the same limit.
const MAX_LINKS: usize = 40;
/// The maximum number of retries: `openat2` returns `EAGAIN` if a directory moved while `..` was resolved.
const MAX_RETRIES: usize = 16;

/// Opens files beneath one directory, and never outside it.
#[derive(Debug)]
pub(crate) struct ContainedDir {
    root: OwnedFd,
    resolver: Resolver,
}

/// How links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// By the kernel, in `openat2`.
    Openat2,
    /// By walking the path one component at a time.
    Walk,
}

/// Why a path beneath the directory was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// A link or `..` points outside the directory.
    #[error("the path points outside the skill")]
    Outside,
    /// The system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Outside,
            errno => Self::System(errno.into()),
        }
    }
}

impl ContainedDir {
    /// Opens the directory itself. Links in `path` are followed, because the caller chose the path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_at(CWD, path.as_os_str().as_bytes())
    }

    /// Opens the directory relative to another one.
    pub(crate) fn open_at(parent: BorrowedFd<'_>, path: &[u8]) -> io::Result<Self> {
        Self::open_with(parent, path, OFlags::RDONLY)
    }

    /// Opens the directory for [`Self::open_beneath`] alone, which needs search permission but no read permission.
    pub(crate) fn open_for_lookup(path: &Path) -> io::Result<Self> {
        Self::open_with(CWD, path.as_os_str().as_bytes(), OFlags::PATH)
    }

    fn open_with(parent: BorrowedFd<'_>, path: &[u8], access: OFlags) -> io::Result<Self> {
        let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(parent, path, flags, Mode::empty())?;
        let resolver = available_resolver(root.as_fd());
        Ok(Self { root, resolver })
    }

    #[cfg(test)]
    pub(crate) fn with_resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// The descriptor of the directory. All listings through it share one read position.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a second descriptor of the same directory, with its own read position.
    pub(crate) fn open_for_listing(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.root, c".", flags, Mode::empty())?)
    }

    /// Opens `path`, following links that stay inside the directory.
    ///
    /// The call never blocks: a FIFO is opened without a writer. A terminal does not become the controlling one.
    pub(crate) fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, OpenError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        // `openat2` rejects other flags together with `O_PATH`.
        let flags = if flags.contains(OFlags::PATH) {
            flags & (OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY)
        } else {
            flags
        };
        match self.resolver {
            Resolver::Openat2 => open_with_openat2(self.root.as_fd(), path, flags),
            Resolver::Walk => PathWalk::new(self.root.as_fd(), path).open(flags),
        }
    }
}

fn available_resolver(directory: BorrowedFd<'_>) -> Resolver {
    static AVAILABLE: OnceLock<Resolver> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        match openat2(
            directory,
            c".",
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            resolve_flags(),
        ) {
            // Older container runtimes block unknown calls with EPERM.
            Err(Errno::NOSYS | Errno::PERM) => Resolver::Walk,
            _ => Resolver::Openat2,
        }
    })
}

fn resolve_flags() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS
}

fn open_with_openat2(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, OpenError> {
    let mut retries = 0;
    loop {
        match openat2(root, path, flags, Mode::empty(), resolve_flags()) {
            Err(Errno::AGAIN) if retries < MAX_RETRIES => retries += 1,
            result => return Ok(result?),
        }
    }
}

/// A path that is being resolved, one component at a time.
struct PathWalk<'a> {
    root: BorrowedFd<'a>,
    /// The directories opened below the root, innermost last.
    opened: Vec<OwnedFd>,
    /// The components still to resolve, the next one last.
    remaining: Vec<Vec<u8>>,
    followed_links: usize,
}

impl<'a> PathWalk<'a> {
    fn new(root: BorrowedFd<'a>, path: &[u8]) -> Self {
        let mut walk = Self {
            root,
            opened: Vec::new(),
            remaining: Vec::new(),
            followed_links: 0,
        };
        walk.push_path(path);
        walk
    }

    fn push_path(&mut self, path: &[u8]) {
        let parts = path.split(|byte| *byte == b'/').rev();
        self.remaining.extend(
            parts
                .filter(|part| !part.is_empty() && part != b".")
                .map(<[u8]>::to_vec),
        );
    }

    fn current_dir(&self) -> BorrowedFd<'_> {
        self.opened.last().map_or(self.root, AsFd::as_fd)
    }

    fn open(mut self, flags: OFlags) -> Result<OwnedFd, OpenError> {
        while let Some(part) = self.remaining.pop() {
            if part == b".." {
                self.opened.pop().ok_or(OpenError::Outside)?;
                continue;
            }
            let component = openat(
                self.current_dir(),
                &part[..],
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            match FileType::from_raw_mode(fstat(&component)?.st_mode) {
                FileType::Symlink => self.follow_link(&component)?,
                FileType::Directory => self.opened.push(component),
                // Only a directory can have components below it.
                _ if !self.remaining.is_empty() => return Err(Errno::NOTDIR.into()),
                _ if flags.contains(OFlags::PATH) => return Ok(component),
                _ => {
                    return Ok(openat(
                        self.current_dir(),
                        &part[..],
                        flags | OFlags::NOFOLLOW,
                        Mode::empty(),
                    )?);
                }
            }
        }
        Ok(openat(self.current_dir(), c".", flags, Mode::empty())?)
    }

    fn follow_link(&mut self, link: &OwnedFd) -> Result<(), OpenError> {
        self.followed_links += 1;
        if self.followed_links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(link, c"", Vec::new())?.into_bytes();
        if target.starts_with(b"/") {
            return Err(OpenError::Outside);
        }
        self.push_path(&target);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    /// Opens a path: the content of the file, or the kind of error.
    fn open_and_read(root: &Path, resolver: Resolver, path: &str) -> String {
        let directory = ContainedDir::open(root).unwrap().with_resolver(resolver);
        match directory.open_beneath(path.as_bytes(), OFlags::RDONLY) {
            Ok(file) => match io::read_to_string(fs::File::from(file)) {
                Ok(text) => text,
                Err(error) => format!("{:?}", error.kind()),
            },
            Err(OpenError::Outside) => "outside".to_owned(),
            Err(OpenError::System(error)) => format!("{:?}", error.kind()),
        }
    }

    #[test]
    fn both_resolvers_reject_paths_outside_the_directory() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("skill");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(root.join("inside"), "inside").unwrap();
        for (link, target) in [
            ("sub/up", "../inside"),
            ("sub/deep/two-up", "../../inside"),
            ("chain", "sub/up"),
            ("to-dir", "sub"),
            ("round", "sub/../inside"),
            ("out", "../secret"),
            ("out-and-in", "../skill/inside"),
            ("sub/out", "../../secret"),
            ("absolute", "/etc/hostname"),
            ("process", "/proc/self/root"),
            ("loop", "loop"),
            ("nowhere", "gone"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        symlink(root.join("inside"), root.join("absolute-inside")).unwrap();
        for (path, expected) in [
            ("inside", "inside"),
            ("sub/up", "inside"),
            ("sub/deep/two-up", "inside"),
            ("chain", "inside"),
            ("to-dir/up", "inside"),
            ("round", "inside"),
            ("sub", "IsADirectory"),
            ("out", "outside"),
            ("out-and-in", "outside"),
            ("to-dir/out", "outside"),
            ("absolute", "outside"),
            ("absolute-inside", "outside"),
            ("process", "outside"),
            ("../secret", "outside"),
            ("..", "outside"),
            ("loop", "FilesystemLoop"),
            ("nowhere", "NotFound"),
            ("inside/below", "NotADirectory"),
        ] {
            for resolver in [Resolver::Openat2, Resolver::Walk] {
                assert_eq!(open_and_read(&root, resolver, path), expected, "{path} by {resolver:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Random trees of links: both resolvers agree, and neither ever returns bytes from outside.
        #[test]
        fn no_tree_of_links_escapes(
            links in proptest::collection::vec(
                ("[abc](/[abc])?", "(\\.\\./){0,3}([abc]/){0,2}(secret|file|[abc])|/etc/passwd"),
                0..10,
            ),
            paths in proptest::collection::vec("([abc]|\\.\\.)(/([abc]|\\.\\.|file|secret)){0,3}", 8),
        ) {
            let outer = tempfile::tempdir().unwrap();
            let root = outer.path().join("a");
            fs::create_dir_all(root.join("b")).unwrap();
            fs::write(outer.path().join("secret"), "SECRET").unwrap();
            fs::write(root.join("file"), "inside").unwrap();
            fs::write(root.join("b/file"), "inside too").unwrap();
            for (link, target) in &links {
                let link = root.join(link);
                let _ = fs::create_dir_all(link.parent().unwrap());
                let _ = symlink(target, link);
            }
            for path in &paths {
                let with_openat2 = open_and_read(&root, Resolver::Openat2, path);
                prop_assert_eq!(&with_openat2, &open_and_read(&root, Resolver::Walk, path), "{}", path);
                prop_assert!(!with_openat2.contains("SECRET") && !with_openat2.contains("root:"), "{}", path);
            }
        }
    }
}
