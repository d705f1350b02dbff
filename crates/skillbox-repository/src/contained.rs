//! Opening files below a directory descriptor, so that no link can lead out.
//!
//! The kernel does it in one call (`openat2` with `RESOLVE_BENEATH`), free of races. Where that call is missing
//! (Linux before 5.6, some sandboxes), the path is walked one component at a time: every step is opened without
//! following links, link texts are read and walked in their turn, and `..` goes back along the descriptors that
//! were really passed. Both refuse absolute links, even those that point back inside: a skill is moved and
//! copied, and such a link would then lead out.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

/// As many links as the kernel itself follows in one path.
const MAX_LINKS: usize = 40;
/// The kernel asks for another try when a directory moved while `..` was resolved.
const MAX_TRIES: usize = 16;

/// A directory below which files are opened, and never beside.
#[derive(Debug)]
pub(crate) struct ContainedDir {
    root: OwnedFd,
    resolver: Resolver,
}

/// Who follows the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// `openat2`.
    Kernel,
    /// One component at a time.
    Walk,
}

/// Why a path below the directory was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// A link or `..` leads out of the directory.
    #[error("the path leads out of the skill")]
    Leaves,
    /// The system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Leaves,
            errno => Self::System(errno.into()),
        }
    }
}

impl ContainedDir {
    /// Opens the directory itself; links on the way to it are followed, it is the caller who names it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_at(CWD, path.as_os_str().as_bytes())
    }

    /// The same, relative to another directory.
    pub(crate) fn open_at(parent: BorrowedFd<'_>, path: &[u8]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(parent, path, flags, Mode::empty())?;
        let resolver = available_resolver(root.as_fd());
        Ok(Self { root, resolver })
    }

    #[cfg(test)]
    pub(crate) fn with_resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// The descriptor of the directory. It is not for listing more than once: a listing moves it to its end.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A descriptor of the same directory, at its beginning and of its own.
    pub(crate) fn for_listing(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.root, c".", flags, Mode::empty())?)
    }

    /// Opens `path`, following links that stay inside.
    ///
    /// Nothing blocks: a FIFO is opened without a partner, and a terminal does not become ours.
    pub(crate) fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, OpenError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        // `O_PATH` takes no other flags with it.
        let flags = if flags.contains(OFlags::PATH) {
            flags & (OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY)
        } else {
            flags
        };
        match self.resolver {
            Resolver::Kernel => open_by_kernel(self.root.as_fd(), path, flags),
            Resolver::Walk => Walk::new(self.root.as_fd(), path).open(flags),
        }
    }
}

fn available_resolver(directory: BorrowedFd<'_>) -> Resolver {
    static FOUND: OnceLock<Resolver> = OnceLock::new();
    *FOUND.get_or_init(|| {
        match openat2(
            directory,
            c".",
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            resolve(),
        ) {
            // Older container runtimes forbid calls that they do not know with EPERM.
            Err(Errno::NOSYS | Errno::PERM) => Resolver::Walk,
            _ => Resolver::Kernel,
        }
    })
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS
}

fn open_by_kernel(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, OpenError> {
    let mut tries = 0;
    loop {
        match openat2(root, path, flags, Mode::empty(), resolve()) {
            Err(Errno::AGAIN) if tries < MAX_TRIES => tries += 1,
            result => return Ok(result?),
        }
    }
}

/// A path on its way down, one component at a time.
struct Walk<'a> {
    root: BorrowedFd<'a>,
    /// The directories passed, innermost last; empty means the root.
    passed: Vec<OwnedFd>,
    /// The components to come, next one last.
    ahead: Vec<Vec<u8>>,
    links: usize,
}

impl<'a> Walk<'a> {
    fn new(root: BorrowedFd<'a>, path: &[u8]) -> Self {
        let mut walk = Self {
            root,
            passed: Vec::new(),
            ahead: Vec::new(),
            links: 0,
        };
        walk.go_along(path);
        walk
    }

    fn go_along(&mut self, path: &[u8]) {
        let parts = path.split(|byte| *byte == b'/').rev();
        self.ahead.extend(
            parts
                .filter(|part| !part.is_empty() && part != b".")
                .map(<[u8]>::to_vec),
        );
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.passed.last().map_or(self.root, AsFd::as_fd)
    }

    fn open(mut self, flags: OFlags) -> Result<OwnedFd, OpenError> {
        while let Some(part) = self.ahead.pop() {
            if part == b".." {
                self.passed.pop().ok_or(OpenError::Leaves)?;
                continue;
            }
            let step = openat(
                self.here(),
                &part[..],
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            match FileType::from_raw_mode(fstat(&step)?.st_mode) {
                FileType::Symlink => self.follow(&step)?,
                FileType::Directory => self.passed.push(step),
                // Whatever lies ahead, a file is the end of the way.
                _ if !self.ahead.is_empty() => return Err(Errno::NOTDIR.into()),
                _ if flags.contains(OFlags::PATH) => return Ok(step),
                _ => return Ok(openat(self.here(), &part[..], flags | OFlags::NOFOLLOW, Mode::empty())?),
            }
        }
        Ok(openat(self.here(), c".", flags, Mode::empty())?)
    }

    fn follow(&mut self, link: &OwnedFd) -> Result<(), OpenError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(link, c"", Vec::new())?.into_bytes();
        if target.starts_with(b"/") {
            return Err(OpenError::Leaves);
        }
        self.go_along(&target);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    /// What a resolver makes of a path: the content of the file, or the kind of refusal.
    fn outcome(root: &Path, resolver: Resolver, path: &str) -> String {
        let directory = ContainedDir::open(root).unwrap().with_resolver(resolver);
        match directory.open_beneath(path.as_bytes(), OFlags::RDONLY) {
            Ok(file) => match io::read_to_string(fs::File::from(file)) {
                Ok(text) => text,
                Err(error) => format!("{:?}", error.kind()),
            },
            Err(OpenError::Leaves) => "leaves".to_owned(),
            Err(OpenError::System(error)) => format!("{:?}", error.kind()),
        }
    }

    #[test]
    fn both_resolvers_know_inside_from_outside() {
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
            ("out", "leaves"),
            ("out-and-in", "leaves"),
            ("to-dir/out", "leaves"),
            ("absolute", "leaves"),
            ("absolute-inside", "leaves"),
            ("process", "leaves"),
            ("../secret", "leaves"),
            ("..", "leaves"),
            ("loop", "FilesystemLoop"),
            ("nowhere", "NotFound"),
            ("inside/below", "NotADirectory"),
        ] {
            for resolver in [Resolver::Kernel, Resolver::Walk] {
                assert_eq!(outcome(&root, resolver, path), expected, "{path} by {resolver:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Random trees of links: both resolvers agree, and neither ever gives the bytes outside.
        #[test]
        fn no_tree_of_links_leads_out(
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
                let by_kernel = outcome(&root, Resolver::Kernel, path);
                prop_assert_eq!(&by_kernel, &outcome(&root, Resolver::Walk, path), "{}", path);
                prop_assert!(!by_kernel.contains("SECRET") && !by_kernel.contains("root:"), "{}", path);
            }
        }
    }
}
