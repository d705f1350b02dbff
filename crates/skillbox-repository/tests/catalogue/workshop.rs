use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};
use tempfile::TempDir;

/// A directory to build skills in, gone afterwards.
pub struct Workshop {
    directory: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("skills")).unwrap();
        Self { directory }
    }

    /// The directory around the source.
    pub fn outside(&self) -> &Path {
        self.directory.path()
    }

    /// The source.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("skills")
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    /// Writes a file below the source, with the directories that it needs.
    pub fn file(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes an ordinary skill, named after its directory.
    pub fn skill(&self, dir: &str) -> PathBuf {
        let name = Path::new(dir).file_name().unwrap().to_str().unwrap();
        self.file(&format!("{dir}/SKILL.md"), skill_md(name, &format!("About {name}.")))
    }

    pub fn source(&self) -> Source {
        directory(self.root())
    }

    pub fn open(&self) -> Repository {
        Repository::open(vec![self.source()], ScanOptions::default())
    }

    pub fn scan(&self) -> Catalog {
        self.open().catalog()
    }
}

pub fn directory(path: impl Into<PathBuf>) -> Source {
    Source::Directory {
        path: path.into(),
        scope: Scope::Project,
    }
}

pub fn skill_md(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\nDo it.\n")
}

/// The names in the order of the catalogue.
pub fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.skills().map(|entry| entry.name().as_str()).collect()
}

/// Codes with the paths that they are about, relative to `root` where they lie below it.
pub fn findings(catalog: &Catalog, root: &Path) -> BTreeSet<(String, String)> {
    catalog
        .diagnostics()
        .iter()
        .map(|it| {
            let path = it.path.strip_prefix(root).unwrap_or(&it.path);
            (it.code.to_owned(), path.to_string_lossy().into_owned())
        })
        .collect()
}

/// Checks that the findings are exactly these.
#[track_caller]
pub fn assert_findings(catalog: &Catalog, root: &Path, expected: &[(&str, &str)]) {
    let expected: BTreeSet<_> = expected
        .iter()
        .map(|(code, path)| ((*code).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(findings(catalog, root), expected, "{:#?}", catalog.diagnostics());
    assert_eq!(
        catalog.diagnostics().len(),
        expected.len(),
        "{:#?}",
        catalog.diagnostics()
    );
}

/// Runs `work` on a thread that may not bypass permission bits, as root otherwise may.
pub fn without_root_rights<T: Send>(work: impl FnOnce() -> T + Send) -> T {
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
