//! Orders paths so that a directory is followed directly by everything below it.

use std::cmp::Ordering;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Compares two paths component by component, which is the order of the catalog.
pub(crate) fn compare_paths(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.as_os_str().as_bytes(), b.as_os_str().as_bytes());
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let next = |path: &[u8]| path.get(common).map(|byte| if *byte == b'/' { 0 } else { *byte });
    next(a).cmp(&next(b))
}

/// Whether `path` is below `directory`.
pub(crate) fn is_below(path: &Path, directory: &Path) -> bool {
    path.as_os_str()
        .as_bytes()
        .strip_prefix(directory.as_os_str().as_bytes())
        .is_some_and(|rest| rest.first() == Some(&b'/') || directory.as_os_str().as_bytes() == b"/" && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_a_directory_directly_follows_it() {
        let mut paths = ["/s/a-b", "/s/a/b", "/s/a", "/s", "/s/b", "/s/a/b/c", "/s/a!"].map(Path::new);
        paths.sort_by(|a, b| compare_paths(a, b));
        assert_eq!(
            paths,
            ["/s", "/s/a", "/s/a/b", "/s/a/b/c", "/s/a!", "/s/a-b", "/s/b"].map(Path::new)
        );
    }

    #[test]
    fn below_compares_whole_components() {
        for (path, directory, below) in [
            ("/s/a", "/s", true),
            ("/s", "/s", false),
            ("/sa", "/s", false),
            ("/a", "/", true),
            ("/", "/", false),
        ] {
            assert_eq!(
                is_below(Path::new(path), Path::new(directory)),
                below,
                "{path} {directory}"
            );
        }
    }
}
