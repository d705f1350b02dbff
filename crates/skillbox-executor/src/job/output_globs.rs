//! The globs that select output files.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use skillbox_model::{ErrorCode, RelPath, RunId};

use super::RequestError;
use super::variables::{self, ResolvedPath};

const MAX_GLOB_BYTES: usize = 1024;
const MAX_GLOBS: usize = 256;

/// Globs relative to the workspace, with the directories below which they can match.
#[derive(Clone, Debug)]
pub struct OutputGlobs {
    matcher: Matcher,
    /// The directories where the search starts. The empty text is the workspace itself.
    roots: BTreeSet<String>,
    /// The globs without a wildcard: each names one file.
    exact_names: BTreeSet<String>,
}

#[derive(Clone, Debug)]
enum Matcher {
    Globs(GlobSet),
    /// Everything below the roots. It needs no compiled glob.
    Everything,
    /// The same without the directories in which Python keeps compiled modules.
    EverythingButCaches,
}

impl OutputGlobs {
    /// Parses several lists of globs into one set. Each list has the name of its field, for errors.
    pub fn parse(lists: &[(&str, &[String])], run_id: &RunId) -> Result<Self, RequestError> {
        let mut builder = GlobSetBuilder::new();
        let mut roots = BTreeSet::new();
        let mut exact_names = BTreeSet::new();
        for (field, globs) in lists {
            if globs.len() > MAX_GLOBS {
                return Err(RequestError::invalid(*field, format!("more than {MAX_GLOBS} globs")));
            }
            for (index, glob) in globs.iter().enumerate() {
                let field = format!("{field}[{index}]");
                let text = resolve_glob(glob, run_id, &field)?;
                let compiled = GlobBuilder::new(&text)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .build()
                    .map_err(|error| {
                        RequestError::invalid(&field, format!("{glob:?} is not a glob: {}", error.kind()))
                    })?;
                builder.add(compiled);
                roots.insert(literal_root(&text));
                if !text.contains(['*', '?', '[', '{', '\\']) {
                    exact_names.insert(text);
                }
            }
        }
        let set = builder
            .build()
            .map_err(|error| RequestError::invalid("outputs", format!("the globs are too large in total: {error}")))?;
        let is_covered = |root: &String| {
            roots
                .iter()
                .any(|other| other != root && (other.is_empty() || root.starts_with(&format!("{other}/"))))
        };
        let roots = roots.iter().filter(|root| !is_covered(root)).cloned().collect();
        Ok(Self {
            matcher: Matcher::Globs(set),
            roots,
            exact_names,
        })
    }

    /// Matches nothing.
    pub fn nothing() -> Self {
        Self {
            matcher: Matcher::Everything,
            roots: BTreeSet::new(),
            exact_names: BTreeSet::new(),
        }
    }

    /// Matches everything below one directory of the workspace.
    pub fn everything_in(directory: &str) -> Self {
        Self {
            matcher: Matcher::Everything,
            roots: BTreeSet::from([directory.to_owned()]),
            exact_names: BTreeSet::new(),
        }
    }

    /// Matches what a run leaves where results are expected: everything in these directories of the workspace, except
    /// the files that Python caches.
    pub fn results_in(directories: &[&str]) -> Self {
        Self {
            matcher: Matcher::EverythingButCaches,
            roots: directories.iter().map(|directory| (*directory).to_owned()).collect(),
            exact_names: BTreeSet::new(),
        }
    }

    /// Whether a path below one of the roots matches.
    pub fn matches(&self, path: &RelPath) -> bool {
        match &self.matcher {
            Matcher::Globs(set) => set.is_match(path.as_path()),
            // Callers pass only paths below the roots.
            Matcher::Everything => true,
            Matcher::EverythingButCaches => path.components().all(|part| part != b"__pycache__"),
        }
    }

    /// Whether a glob without a wildcard names exactly this path.
    pub fn names_exactly(&self, path: &RelPath) -> bool {
        path.to_str().is_some_and(|path| self.exact_names.contains(path))
    }

    /// Whether nothing can match.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The directories below which something can match. None of them contains another.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(String::as_str)
    }
}

/// Resolves a leading variable and rejects globs that leave the workspace.
fn resolve_glob(glob: &str, run_id: &RunId, field: &str) -> Result<String, RequestError> {
    if glob.len() > MAX_GLOB_BYTES {
        return Err(RequestError::invalid(
            field,
            format!("the glob is longer than {MAX_GLOB_BYTES} bytes"),
        ));
    }
    if glob.contains('\0') {
        return Err(RequestError::invalid(field, "the glob contains a NUL byte"));
    }
    let text = match variables::resolve_prefix(glob, run_id) {
        ResolvedPath::Plain(plain) => plain.to_owned(),
        ResolvedPath::Below { directory, rest } => variables::join(&directory, rest),
        ResolvedPath::UnknownVariable(_) => {
            return Err(RequestError::invalid(
                field,
                format!("{glob:?} starts with an unknown variable"),
            ));
        }
    };
    let mut text = text.as_str();
    while let Some(rest) = text.strip_prefix("./") {
        text = rest;
    }
    if text.starts_with('/') {
        return Err(RequestError::new(
            field,
            ErrorCode::PathEscape,
            format!("{glob:?} is absolute"),
        ));
    }
    // Alternatives such as `{..,a}` can hide a component, so the text is split wherever a component can start.
    let has_parent_component = text.split(['/', '{', ',', '}']).any(|part| part == "..") || text.contains("\\.");
    if has_parent_component {
        return Err(RequestError::new(
            field,
            ErrorCode::PathEscape,
            format!("{glob:?} contains `..`"),
        ));
    }
    if text.is_empty() {
        return Err(RequestError::invalid(field, "the glob is empty"));
    }
    // A trailing slash selects everything in the directory.
    Ok(if text.ends_with('/') {
        format!("{text}**")
    } else {
        text.to_owned()
    })
}

/// The leading components without glob characters.
fn literal_root(glob: &str) -> String {
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\', '!']);
    let parts: Vec<&str> = glob.split('/').collect();
    let directories = &parts[..parts.len() - 1];
    let literal_components: Vec<&str> = directories.iter().copied().take_while(is_literal).collect();
    literal_components.join("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn globs(texts: &[&str]) -> Result<OutputGlobs, RequestError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        OutputGlobs::parse(&[("output_files", &texts)], &RunId::parse("r1").unwrap())
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn globs_match_as_documented() {
        let check = |glob: &str, hit: &str, miss: &str| {
            let globs = globs(&[glob]).unwrap();
            assert!(globs.matches(&path(hit)), "{glob} should match {hit}");
            assert!(!globs.matches(&path(miss)), "{glob} should not match {miss}");
        };
        check("out/*.txt", "out/a.txt", "out/b/a.txt");
        check("out/**", "out/b/a.txt", "work/a");
        check("out/**/*.csv", "out/a.csv", "out/a.txt");
        check("*.csv", "a.csv", "out/a.csv");
        check("$OUTPUT_DIR/x", "out/x", "x");
        check("${WORK_DIR}/**", "work/a/b", "out/a");
        check("./out/{a,b}.txt", "out/b.txt", "out/c.txt");
        check("out/", "out/x/y", "out");
        check("/workspace/out/*", "out/.hidden", "out/a/b");
        check("out/[ab]", "out/a", "out/c");
    }

    #[test]
    fn globs_that_leave_or_do_not_parse_are_refused() {
        for text in [
            "../*",
            "/etc/*",
            "out/../../x",
            "out/{..,a}/x",
            "{../x,y}",
            "out/\\../x",
        ] {
            assert_eq!(globs(&[text]).unwrap_err().code, ErrorCode::PathEscape, "{text}");
        }
        for text in ["", "out/[", "$HOME/x", "$OUTPUT_DIRX", "a\0", &"*".repeat(10_000)] {
            let error = globs(&["out/*", text]).unwrap_err();
            assert_eq!(
                (error.code, error.field.as_str()),
                (ErrorCode::InvalidRequest, "output_files[1]"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_search_starts_where_something_can_match() {
        let roots = |texts: &[&str]| globs(texts).unwrap().roots().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(roots(&["out/*.txt", "out/a/*.csv", "work/x/y"]), ["out", "work/x"]);
        assert_eq!(roots(&["out/*", "*.md"]), [""]);
        assert_eq!(roots(&["out/a*/b/c"]), ["out"]);
    }

    proptest! {
        #[test]
        fn every_match_is_below_a_root(glob in "[ab*/?{},.]{1,10}", file in "[ab./]{1,8}") {
            if let (Ok(globs), Ok(file)) = (globs(&[&glob]), RelPath::parse(&file))
                && globs.matches(&file) {
                    let below = globs.roots().any(|root| root.is_empty() || file.starts_with(&path(root)));
                    prop_assert!(below, "{glob} matches {file} outside its roots");
                }
        }
    }
}
