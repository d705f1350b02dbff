//! A relative path that stays below its directory.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A path below a directory, for use with the descriptor of that directory.
///
/// Invariants: not empty; not absolute; no empty, `.` or `..` component (so no leading, trailing or doubled
/// slash); no NUL; every component at most 255 bytes; at most 4,095 bytes in all. The bytes are not normalised, so
/// different values are different paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(Box<[u8]>);

/// The error for bytes that are not a [`RelPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelPathError {
    /// There are no bytes.
    #[error("the path is empty")]
    Empty,
    /// The path starts with a slash.
    #[error("the path {0:?} is absolute")]
    Absolute(String),
    /// The path has a `..` component.
    #[error("the path {0:?} contains `..`")]
    ParentDir(String),
    /// The path has an empty or `.` component, which would give one path several spellings.
    #[error("the path {0:?} has an empty or `.` component")]
    NotCanonical(String),
    /// The path has a NUL byte, at which the kernel would truncate it.
    #[error("the path {0:?} contains a NUL byte")]
    Nul(String),
    /// The path or a component is longer than the kernel accepts.
    #[error("the path is too long: {0} bytes")]
    TooLong(usize),
}

impl RelPathError {
    /// Whether the path would leave its directory. Paths with other errors are merely malformed.
    pub fn is_escape(&self) -> bool {
        matches!(self, Self::Absolute(_) | Self::ParentDir(_))
    }
}

impl RelPath {
    /// Parses bytes into a path without changing them.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, RelPathError> {
        let bytes = bytes.as_ref();
        let quoted = || String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        if bytes.is_empty() {
            return Err(RelPathError::Empty);
        }
        if bytes.contains(&0) {
            return Err(RelPathError::Nul(quoted()));
        }
        if bytes[0] == b'/' {
            return Err(RelPathError::Absolute(quoted()));
        }
        // `..` is checked first, so that a path with several errors is reported as an escape.
        if bytes.split(|b| *b == b'/').any(|part| part == b"..") {
            return Err(RelPathError::ParentDir(quoted()));
        }
        if bytes.len() > 4095 || bytes.split(|b| *b == b'/').any(|part| part.len() > 255) {
            return Err(RelPathError::TooLong(bytes.len()));
        }
        if bytes.split(|b| *b == b'/').any(|part| part.is_empty() || part == b".") {
            return Err(RelPathError::NotCanonical(quoted()));
        }
        Ok(Self(bytes.into()))
    }

    /// Parses a path that a person or a model typed: a leading `./` and trailing slashes are removed first.
    pub fn parse_user_input(text: &str) -> Result<Self, RelPathError> {
        let mut rest = text;
        while let Some(stripped) = rest.strip_prefix("./") {
            rest = stripped.trim_start_matches('/');
        }
        let trimmed = rest.trim_end_matches('/');
        // A text that consists of slashes is the root, not an empty path.
        if trimmed.is_empty() && text.starts_with('/') {
            return Err(RelPathError::Absolute(text.chars().take(200).collect()));
        }
        Self::parse(trimmed)
    }

    /// The exact bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for system calls. Use it only relative to a directory descriptor.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The text, if the bytes are UTF-8.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The components, outermost first.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    /// The last component.
    pub fn file_name(&self) -> &[u8] {
        self.components().next_back().unwrap_or(&self.0)
    }

    /// The path without its last component, if it has more than one.
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..cut].into()))
    }

    /// This path followed by another.
    pub fn join(&self, below: &Self) -> Result<Self, RelPathError> {
        Self::parse([&*self.0, b"/", &*below.0].concat())
    }

    /// Whether this path is `other` or below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0
            .strip_prefix(&*other.0)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl TryFrom<String> for RelPath {
    type Error = RelPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> Self {
        String::from_utf8_lossy(&path.0).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_paths_are_kept() {
        for path in ["a", "a/b", "out/fib.txt", "..x/y", "a..b", "-rf", "a b", "名/前"] {
            assert_eq!(RelPath::parse(path).unwrap().as_bytes(), path.as_bytes());
        }
        assert_eq!(RelPath::parse(b"a/\xff").unwrap().to_str(), None);
    }

    #[test]
    fn paths_that_escape_or_are_not_canonical_are_refused() {
        for path in ["/a", "..", "../a", "a/..", "a/../b", "a//../..//x", "/"] {
            assert!(RelPath::parse(path).unwrap_err().is_escape(), "{path:?}");
        }
        for path in [
            "",
            "a//b",
            "a/",
            "./a",
            "a/./b",
            ".",
            "a\0b",
            &"x".repeat(256),
            &"ab/".repeat(1400),
        ] {
            assert!(RelPath::parse(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn typed_paths_lose_only_leading_dots_and_trailing_slashes() {
        assert_eq!(RelPath::parse_user_input("./a/b/").unwrap().to_str(), Some("a/b"));
        assert_eq!(RelPath::parse_user_input(".//a").unwrap().to_str(), Some("a"));
        for path in ["./..", "./", "//", "././../x", "a/./b"] {
            assert!(RelPath::parse_user_input(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn starts_with_compares_whole_components() {
        let path = RelPath::parse("out/ab").unwrap();
        assert!(path.starts_with(&RelPath::parse("out").unwrap()));
        assert!(path.starts_with(&path));
        assert!(!path.starts_with(&RelPath::parse("out/a").unwrap()));
    }

    proptest! {
        #[test]
        fn an_accepted_path_stays_below_its_directory(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(path) = RelPath::parse(&bytes) {
                prop_assert_eq!(path.as_bytes(), &bytes[..]);
                let joined = Path::new("/root-of-it").join(path.as_path());
                let mut depth = 0_i32;
                for part in joined.components().skip(2) {
                    prop_assert!(matches!(part, std::path::Component::Normal(_)));
                    depth += 1;
                }
                prop_assert!(depth >= 1);
                prop_assert!(joined.starts_with("/root-of-it"));
            }
        }

        #[test]
        fn parent_and_name_join_to_the_path(path in "[a-c./]{1,12}") {
            if let Ok(path) = RelPath::parse(&path)
                && let Some(parent) = path.parent() {
                    let name = RelPath::parse(path.file_name()).unwrap();
                    prop_assert_eq!(parent.join(&name).unwrap(), path);
                }
        }
    }
}
