//! Expands the patterns of `--each` to files, in a fixed order.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, JobId};

use crate::error::{BadLine, BatchError, MAX_JOBS};

/// `**` looks at most this deep, which also ends cycles of links.
const MAX_DEPTH: usize = 32;
/// The digits of a digest that make an id unique.
const ID_DIGEST_DIGITS: usize = 12;
const MAX_ID_TEXT_CHARS: usize = 100;

/// A file that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The absolute path.
    pub(crate) path: Box<str>,
    /// The id of its job, which depends only on the pattern and on the path.
    pub(crate) id: JobId,
}

/// The files that all patterns match.
#[derive(Clone, Debug, Default)]
pub struct FoundFiles {
    /// The files, without duplicates, ordered by path.
    pub files: Vec<FoundFile>,
    /// The directories from which the patterns start, in which inputs have to be allowed.
    pub base_directories: Vec<PathBuf>,
    /// Files whose names cannot be used.
    pub bad: Vec<BadLine>,
}

impl FoundFile {
    /// The name of the file.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    #[cfg(test)]
    pub(crate) fn for_test(path: &str, id: &str) -> Self {
        Self {
            path: path.into(),
            id: JobId::parse(id).unwrap(),
        }
    }
}

/// Expands patterns relative to a directory. A pattern matches files; with a slash at its end, directories.
pub fn find_files(patterns: &[String], working_dir: &Path) -> Result<FoundFiles, BatchError> {
    let mut found = FoundFiles::default();
    let mut by_path: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for pattern in patterns {
        let invalid = |message: String| BatchError::Pattern {
            pattern: pattern.clone(),
            message,
        };
        let parsed = Pattern::parse(pattern, working_dir).map_err(invalid)?;
        let before = by_path.len();
        let mut walk = Walk {
            wants_directories: pattern.ends_with('/'),
            base: &parsed.base,
            found: &mut by_path,
            has_matched: false,
        };
        walk.visit(&parsed.base, &parsed.parts, 0)
            .map_err(|error| match error {
                WalkError::TooMany => BatchError::TooManyJobs,
                WalkError::Io(path, error) => invalid(format!("cannot read {}: {error}", path.display())),
            })?;
        if !walk.has_matched && by_path.len() == before {
            return Err(invalid("no file matches".to_owned()));
        }
        if !found.base_directories.contains(&parsed.base) {
            found.base_directories.push(parsed.base);
        }
    }
    let has_one_base = found.base_directories.len() == 1;
    for (index, (path, base)) in by_path.into_iter().enumerate() {
        match path.to_str() {
            Some(text) => {
                let below = path.strip_prefix(&base).unwrap_or(&path);
                let id = job_id(below.as_os_str(), has_one_base.then_some(text), text);
                found.files.push(FoundFile { path: text.into(), id });
            }
            None => found.bad.push(BadLine {
                number: index + 1,
                field: None,
                message: format!("the name of {path:?} is not UTF-8"),
            }),
        }
    }
    Ok(found)
}

/// The id of a file's job: its path below the base directory, if that is an identifier and there is one base directory;
/// otherwise a similar text with a digest of the path. Further files do not change it.
fn job_id(below: &OsStr, plain: Option<&str>, path: &str) -> JobId {
    let text = below.to_string_lossy();
    if let (Some(_), Ok(id)) = (plain, JobId::parse(text.as_ref())) {
        return id;
    }
    let similar: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
                c
            } else {
                '_'
            }
        })
        .take(MAX_ID_TEXT_CHARS)
        .collect();
    let digest = Digest::from_sha256(Sha256::digest(path.as_bytes()).into()).hex();
    let start = similar.trim_start_matches(['.', '-', '_']);
    let separator = if start.is_empty() { "file" } else { "" };
    let text = format!("{start}{separator}-{}", &digest[..ID_DIGEST_DIGITS]);
    JobId::parse(text).unwrap_or_else(|error| unreachable!("only allowed characters are left: {error}"))
}

/// A pattern, split into the directory where it starts and the patterns of the names below.
struct Pattern {
    base: PathBuf,
    parts: Vec<Part>,
}

enum Part {
    /// `**`: any number of directories.
    AnyDepth,
    Name {
        matcher: GlobMatcher,
        /// The pattern itself, which also matches a file of exactly this name, such as `[1].csv`.
        text: String,
        /// Names that start with a dot match only patterns that do.
        matches_hidden: bool,
    },
    Literal(String),
}

impl Pattern {
    fn parse(pattern: &str, working_dir: &Path) -> Result<Self, String> {
        if pattern.contains('\0') || pattern.is_empty() {
            return Err("the pattern is empty or contains a NUL byte".to_owned());
        }
        let trimmed = pattern.trim_end_matches('/');
        let texts: Vec<&str> = trimmed.split('/').filter(|text| !matches!(*text, "" | ".")).collect();
        let is_pattern = |text: &&str| text.contains(['*', '?', '[', '{', '\\']);
        // The last name is never part of the base directory.
        let split = texts
            .iter()
            .position(is_pattern)
            .unwrap_or(texts.len().saturating_sub(1))
            .min(texts.len().saturating_sub(1));
        let mut base = if pattern.starts_with('/') {
            PathBuf::from("/")
        } else {
            std::path::absolute(working_dir).map_err(|error| error.to_string())?
        };
        base.extend(&texts[..split]);
        if base.components().any(|part| part == Component::ParentDir) {
            let shown = base.display().to_string();
            base = base.canonicalize().map_err(|error| format!("{shown}: {error}"))?;
        }
        let parts = texts[split..].iter().map(|text| match *text {
            "**" => Ok(Part::AnyDepth),
            ".." => Err("`..` is possible only at the start of a pattern".to_owned()),
            text if is_pattern(&text) => {
                let glob = GlobBuilder::new(text).literal_separator(true).build();
                Ok(Part::Name {
                    matcher: glob.map_err(|error| error.kind().to_string())?.compile_matcher(),
                    matches_hidden: text.starts_with('.'),
                    text: text.to_owned(),
                })
            }
            text => Ok(Part::Literal(text.to_owned())),
        });
        Ok(Self {
            parts: parts.collect::<Result<_, String>>()?,
            base,
        })
    }
}

enum WalkError {
    TooMany,
    Io(PathBuf, std::io::Error),
}

/// Collects what one pattern matches.
struct Walk<'a> {
    wants_directories: bool,
    base: &'a Path,
    found: &'a mut BTreeMap<PathBuf, PathBuf>,
    has_matched: bool,
}

impl Walk<'_> {
    fn visit(&mut self, directory: &Path, parts: &[Part], depth: usize) -> Result<(), WalkError> {
        let Some((part, rest)) = parts.split_first() else {
            return Ok(());
        };
        match part {
            Part::Literal(name) => self.visit_entry(&directory.join(name), rest, depth),
            Part::Name {
                matcher,
                text,
                matches_hidden,
            } => {
                for name in names_in(directory)? {
                    let is_visible = *matches_hidden || !name.as_encoded_bytes().starts_with(b".");
                    if name == text.as_str() || (is_visible && matcher.is_match(&name)) {
                        self.visit_entry(&directory.join(name), rest, depth)?;
                    }
                }
                Ok(())
            }
            Part::AnyDepth => {
                // `**` at the end matches every file below.
                if rest.is_empty() {
                    for name in visible_names_in(directory)? {
                        self.visit_entry(&directory.join(name), rest, depth)?;
                    }
                } else {
                    self.visit(directory, rest, depth)?;
                }
                if depth >= MAX_DEPTH {
                    return Ok(());
                }
                for name in visible_names_in(directory)? {
                    let path = directory.join(name);
                    // Links to directories are not followed, as in shells.
                    if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
                        self.visit(&path, parts, depth + 1)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn visit_entry(&mut self, path: &Path, rest: &[Part], depth: usize) -> Result<(), WalkError> {
        if !rest.is_empty() {
            return if path.is_dir() {
                self.visit(path, rest, depth)
            } else {
                Ok(())
            };
        }
        let is_wanted = fs::metadata(path).is_ok_and(|meta| {
            if self.wants_directories {
                meta.is_dir()
            } else {
                meta.is_file()
            }
        });
        if is_wanted {
            self.has_matched = true;
            self.found
                .entry(path.to_owned())
                .or_insert_with(|| self.base.to_owned());
            if self.found.len() > MAX_JOBS {
                return Err(WalkError::TooMany);
            }
        }
        Ok(())
    }
}

/// The names in a directory. A base directory that cannot be read is an error.
fn names_in(directory: &Path) -> Result<Vec<std::ffi::OsString>, WalkError> {
    let failed = |error| WalkError::Io(directory.to_owned(), error);
    let entries = fs::read_dir(directory).map_err(failed)?;
    entries
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
        .collect()
}

fn visible_names_in(directory: &Path) -> Result<Vec<std::ffi::OsString>, WalkError> {
    let mut names = names_in(directory)?;
    names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for path in paths {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        directory
    }

    fn ids(directory: &Path, patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        let found = find_files(&patterns, directory).unwrap();
        found.files.iter().map(|file| file.id.to_string()).collect()
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        let tree = tree(&[
            "d/b.csv",
            "d/a.csv",
            "d/.hidden.csv",
            "d/c.txt",
            "d/sub/e.csv",
            "d/[x].csv",
        ]);
        let root = tree.path();
        assert_eq!(ids(root, &["d/?.csv"]), ["a.csv", "b.csv"]);
        assert_eq!(ids(root, &["d/a.csv"]), ["a.csv"]);
        assert_eq!(ids(root, &["d/.*.csv"]).len(), 1);
        assert_eq!(
            ids(root, &["d/[x].csv"]).len(),
            1,
            "a pattern also matches its own text"
        );
        assert_eq!(ids(root, &["d/**/?.csv"]).len(), 3);
        assert_eq!(ids(root, &["d/**"]).len(), 5, "hidden files are left out");
        assert_eq!(ids(root, &["d/*/"]), ["sub"], "a slash at the end matches directories");
        assert_eq!(ids(&root.join("d"), &["../d/a*"]), ["a.csv"]);
        fs::write(root.join("d/*.csv"), "").unwrap();
        assert_eq!(
            ids(root, &["d/*.csv"]).len(),
            4,
            "a file that is called like the pattern hides no other"
        );
        for bad in ["", "none/*.csv", "d/*.xls", "d/[", "d/*/../x"] {
            assert!(find_files(&[bad.to_owned()], root).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_do_not_depend_on_other_files() {
        let tree = tree(&["a/x.csv", "b/x.csv", "a/-x y\n$(id).csv"]);
        let one = ids(tree.path(), &["a/*.csv"]);
        assert_eq!(one[1], "x.csv");
        assert!(one[0].starts_with("x_y___id_.csv-"), "{one:?}");
        let two = ids(tree.path(), &["a/*.csv", "b/*.csv"]);
        assert_eq!(two.len(), 3);
        assert!(two.iter().all(|id| id.contains('-')), "{two:?}");
        fs::write(tree.path().join("a/w.csv"), "").unwrap();
        assert_eq!(ids(tree.path(), &["a/*.csv"])[2], "x.csv");
        // A file that two patterns match is one job.
        assert_eq!(ids(tree.path(), &["a/x.csv", "a/*.csv"]).len(), 3);
    }
}
