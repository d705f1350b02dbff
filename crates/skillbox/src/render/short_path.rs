//! Shortens paths below the working directory or the home directory.

use std::path::{Path, PathBuf};

use super::escape::escape_path;

/// The directories that paths are shortened against.
#[derive(Clone, Debug, Default)]
pub struct PathShortener {
    /// Shown as `.`.
    pub working_dir: PathBuf,
    /// Shown as `~`.
    pub home: Option<PathBuf>,
}

impl PathShortener {
    /// The shortest form of a path that can be pasted into a shell.
    pub fn shorten(&self, path: &Path) -> String {
        if let Some(below) = path_below(path, &self.working_dir) {
            return if below.as_os_str().is_empty() {
                ".".to_owned()
            } else {
                format!("./{}", escape_path(below))
            };
        }
        match self.home.as_deref().and_then(|home| path_below(path, home)) {
            Some(below) => format!("~/{}", escape_path(below)),
            None => escape_path(path),
        }
    }
}

fn path_below<'a>(path: &'a Path, dir: &Path) -> Option<&'a Path> {
    // Every path is below `/`; removing that prefix would not shorten it.
    (dir.parent().is_some()).then(|| path.strip_prefix(dir).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shortened() {
        let shortener = PathShortener {
            working_dir: "/home/u/project".into(),
            home: Some("/home/u".into()),
        };
        for (path, expected) in [
            ("/home/u/project/skills/x", "./skills/x"),
            ("/home/u/project", "."),
            ("/home/u/.agents/skills", "~/.agents/skills"),
            ("/home/user2/x", "/home/user2/x"),
            ("built-in:x/SKILL.md", "built-in:x/SKILL.md"),
            ("/home/u/project/a\u{1b}b", "./a\\u{1b}b"),
        ] {
            assert_eq!(shortener.shorten(Path::new(path)), expected);
        }
        let at_root = PathShortener {
            working_dir: "/".into(),
            home: None,
        };
        assert_eq!(at_root.shorten(Path::new("/etc")), "/etc");
    }
}
