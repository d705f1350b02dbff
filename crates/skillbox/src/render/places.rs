//! Paths as people know them: below the working directory or below home.

use std::path::{Path, PathBuf};

use super::visible_path;

/// The two directories that shorten paths.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Shown as `.`.
    pub working_dir: PathBuf,
    /// Shown as `~`.
    pub home: Option<PathBuf>,
}

impl Places {
    /// A path as short as it can be and still be pasted into a shell.
    pub fn short(&self, path: &Path) -> String {
        if let Some(below) = below(path, &self.working_dir) {
            return if below.as_os_str().is_empty() {
                ".".to_owned()
            } else {
                format!("./{}", visible_path(below))
            };
        }
        match self.home.as_deref().and_then(|home| below(path, home)) {
            Some(below) => format!("~/{}", visible_path(below)),
            None => visible_path(path),
        }
    }
}

fn below<'a>(path: &'a Path, dir: &Path) -> Option<&'a Path> {
    // Everything is below `/`; that shortens nothing.
    (dir.parent().is_some()).then(|| path.strip_prefix(dir).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_and_true() {
        let places = Places {
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
            assert_eq!(places.short(Path::new(path)), expected);
        }
        let at_root = Places {
            working_dir: "/".into(),
            home: None,
        };
        assert_eq!(at_root.short(Path::new("/etc")), "/etc");
    }
}
