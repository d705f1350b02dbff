use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};
use tempfile::TempDir;

/// A temporary directory with a source of skills.
pub struct SkillFixture {
    directory: TempDir,
}

impl SkillFixture {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("skills")).unwrap();
        Self { directory }
    }

    /// The directory that contains the source.
    pub fn outside(&self) -> &Path {
        self.directory.path()
    }

    /// The directory of the source.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("skills")
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    /// Writes a file below the source, and creates its parent directories.
    pub fn write_file(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes a valid skill with the name of its directory.
    pub fn write_skill(&self, dir: &str) -> PathBuf {
        let name = Path::new(dir).file_name().unwrap().to_str().unwrap();
        self.write_file(&format!("{dir}/SKILL.md"), skill_md(name, &format!("About {name}.")))
    }

    pub fn source(&self) -> Source {
        directory_source(self.root())
    }

    pub fn open(&self) -> Repository {
        Repository::open(vec![self.source()], ScanOptions::default())
    }

    pub fn scan(&self) -> Catalog {
        self.open().catalog()
    }
}

pub fn directory_source(path: impl Into<PathBuf>) -> Source {
    Source::Directory {
        path: path.into(),
        scope: Scope::Project,
    }
}

pub fn skill_md(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\nDo it.\n")
}

/// The names of the skills, in the order of the catalog.
pub fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.skills().map(|entry| entry.name().as_str()).collect()
}

/// The codes and paths of the diagnostics, relative to `root` if they are below it.
pub fn codes_and_paths(catalog: &Catalog, root: &Path) -> BTreeSet<(String, String)> {
    catalog
        .diagnostics()
        .iter()
        .map(|it| {
            let path = it.path.strip_prefix(root).unwrap_or(&it.path);
            (it.code.to_owned(), path.to_string_lossy().into_owned())
        })
        .collect()
}

/// Checks that the diagnostics are exactly these.
#[track_caller]
pub fn assert_diagnostics(catalog: &Catalog, root: &Path, expected: &[(&str, &str)]) {
    let expected: BTreeSet<_> = expected
        .iter()
        .map(|(code, path)| ((*code).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(codes_and_paths(catalog, root), expected, "{:#?}", catalog.diagnostics());
    assert_eq!(
        catalog.diagnostics().len(),
        expected.len(),
        "{:#?}",
        catalog.diagnostics()
    );
}

/// Runs `work` on a thread that cannot bypass permission bits, even as root.
pub fn without_permission_bypass<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}
