//! Finds the packages that a skill declares: in the script that runs, or in the files of its ecosystem.

use std::io;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

use crate::declaration_error::DeclarationError;
use crate::package_json::{NodePackages, parse_package_json};
use crate::python_project::parse_python_project;
use crate::requirement::Requirement;
use crate::requirements_file::{DeclaredRequirement, parse_requirements_file};
use crate::script_metadata::parse_script_metadata;

/// The largest file that is read for a declaration. Locks of npm are the largest; those of public skills have 400 KiB.
pub const MAX_DECLARATION_BYTES: u64 = 4 << 20;

/// Reads a file of the skill, at most [`MAX_DECLARATION_BYTES`] of it; none if it does not exist.
pub type ReadFile<'a> = dyn Fn(&str) -> io::Result<Option<Vec<u8>>> + 'a;

/// The packages of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Packages of Python.
    pub python: Option<PythonPackages>,
    /// Packages of Node.
    pub node: Option<NodePackages>,
}

/// Declared packages of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonPackages {
    /// The file that declares them, for messages.
    pub file: String,
    /// The requirements.
    pub requirements: Vec<DeclaredRequirement>,
    /// The versions of Python that they need.
    pub requires_python: Option<String>,
}

/// Which language a run uses, as far as its command shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptLanguage {
    /// Python.
    Python,
    /// JavaScript.
    Node,
    /// A shell command or another program, which may use both.
    Unknown,
}

/// Why declared packages could not be found.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// A declaration is refused.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A file cannot be read.
    #[error("cannot read {file} of the skill")]
    Read {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
}

/// The files with requirements of Python, in the order in which they are looked for.
const REQUIREMENTS_FILES: [&str; 2] = ["requirements.txt", "scripts/requirements.txt"];
/// The manifests of Node, in the order in which they are looked for.
const MANIFESTS: [(&str, [&str; 2]); 2] = [
    ("package.json", ["package-lock.json", "npm-shrinkwrap.json"]),
    (
        "scripts/package.json",
        ["scripts/package-lock.json", "scripts/npm-shrinkwrap.json"],
    ),
];

impl Declaration {
    /// The packages that these requirements name, without a file: those of an operator.
    pub fn of_requirements(origin: &str, texts: &[String]) -> Result<Self, DeclarationError> {
        let text = texts.join("\n");
        let requirements = parse_requirements_file(origin, &text)?;
        Ok(Self {
            python: python_packages(origin, requirements, None),
            node: None,
        })
    }

    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.python.is_none() && self.node.is_none()
    }

    /// Adds the requirements of another declaration.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.python = match (self.python, other.python) {
            (Some(mut own), Some(added)) => {
                own.requirements.extend(added.requirements);
                Some(own)
            }
            (own, added) => own.or(added),
        };
        self.node = self.node.or(other.node);
        self
    }

    /// The digest of what is declared. It does not depend on the names of files, on lines or on the order.
    pub fn digest(&self) -> Digest {
        #[derive(Serialize)]
        struct Content<'a> {
            python: Option<Vec<String>>,
            requires_python: Option<&'a str>,
            node: Option<(&'a serde_json::Value, Option<&'a serde_json::Value>)>,
        }
        let content = Content {
            python: self.python.as_ref().map(PythonPackages::lines),
            requires_python: self
                .python
                .as_ref()
                .and_then(|python| python.requires_python.as_deref()),
            node: self.node.as_ref().map(|node| (&node.manifest, node.lock.as_ref())),
        };
        let json = serde_json_canonicalizer::to_vec(&content).expect("strings and JSON serialize");
        Digest::from_sha256(Sha256::digest(json).into())
    }
}

impl PythonPackages {
    /// The lines of a requirements file, sorted and without duplicates.
    pub fn lines(&self) -> Vec<String> {
        let mut requirements: Vec<&Requirement> =
            self.requirements.iter().map(|declared| &declared.requirement).collect();
        requirements.sort();
        requirements.dedup();
        requirements.into_iter().map(Requirement::to_line).collect()
    }

    /// Where a package is declared, such as `requirements.txt:3`; the file alone if it is the dependency of another one.
    pub fn place_of(&self, package: &str) -> String {
        let wanted = crate::requirement::normalized_name(package);
        let mut declared = self.requirements.iter();
        match declared.find(|declared| declared.requirement.name == wanted) {
            Some(declared) => format!("{}:{}", self.file, declared.line),
            None => self.file.clone(),
        }
    }
}

/// Finds the packages for a run. `script` is the path of the script in the skill, if the command names one.
pub fn detect(read: &ReadFile<'_>, script: Option<&str>, language: ScriptLanguage) -> Result<Declaration, DetectError> {
    Ok(Declaration {
        python: match language {
            ScriptLanguage::Node => None,
            ScriptLanguage::Python | ScriptLanguage::Unknown => detect_python(read, script)?,
        },
        node: match language {
            ScriptLanguage::Python => None,
            ScriptLanguage::Node | ScriptLanguage::Unknown => detect_node(read)?,
        },
    })
}

fn detect_python(read: &ReadFile<'_>, script: Option<&str>) -> Result<Option<PythonPackages>, DetectError> {
    if let Some(script) = script.filter(|script| script.ends_with(".py"))
        && let Some(source) = read_text(read, script)?
        && let Some(declared) = parse_script_metadata(script, &source)?
    {
        return Ok(python_packages(script, declared.requirements, declared.requires_python));
    }
    for file in REQUIREMENTS_FILES {
        if let Some(text) = read_text(read, file)? {
            return Ok(python_packages(file, parse_requirements_file(file, &text)?, None));
        }
    }
    let file = "pyproject.toml";
    if let Some(text) = read_text(read, file)?
        && let Some(declared) = parse_python_project(file, &text)?
    {
        return Ok(python_packages(file, declared.requirements, declared.requires_python));
    }
    Ok(None)
}

fn python_packages(
    file: &str,
    requirements: Vec<DeclaredRequirement>,
    requires_python: Option<String>,
) -> Option<PythonPackages> {
    (!requirements.is_empty()).then(|| PythonPackages {
        file: file.to_owned(),
        requirements,
        requires_python,
    })
}

fn detect_node(read: &ReadFile<'_>) -> Result<Option<NodePackages>, DetectError> {
    for (manifest, locks) in MANIFESTS {
        let Some(text) = read_text(read, manifest)? else {
            continue;
        };
        // npm writes this file when it installs, so the skill has its packages already.
        let installed = manifest.replace("package.json", "node_modules/.package-lock.json");
        if read_text(read, &installed)?.is_some() {
            return Ok(None);
        }
        let mut lock = None;
        for file in locks {
            if let Some(found) = read_text(read, file)? {
                lock = Some((file, found));
                break;
            }
        }
        let lock = lock.as_ref().map(|(file, text)| (*file, text.as_str()));
        return Ok(parse_package_json(manifest, &text, lock)?);
    }
    Ok(None)
}

fn read_text(read: &ReadFile<'_>, file: &str) -> Result<Option<String>, DetectError> {
    let bytes = read(file).map_err(|source| DetectError::Read {
        file: file.to_owned(),
        source,
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    if bytes.len() as u64 >= MAX_DECLARATION_BYTES {
        let reason = format!("larger than {} MiB", MAX_DECLARATION_BYTES >> 20);
        return Err(DeclarationError::new(file, reason).into());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        // A script in another encoding is run by its interpreter; it declares nothing that can be read.
        Err(_) if file.ends_with(".py") => Ok(None),
        Err(_) => Err(DeclarationError::new(file, "not UTF-8").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn find(
        files: &[(&str, &str)],
        script: Option<&str>,
        language: ScriptLanguage,
    ) -> Result<Declaration, DetectError> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        detect(
            &|file| Ok(files.get(file).map(|text| text.as_bytes().to_vec())),
            script,
            language,
        )
    }

    #[test]
    fn the_block_of_the_script_comes_before_the_files_of_the_skill() {
        let files = [
            ("scripts/a.py", "# /// script\n# dependencies = [\"numpy\"]\n# ///\n"),
            ("scripts/b.py", "import pandas\n"),
            ("requirements.txt", "pandas\nopenpyxl\n"),
            ("scripts/requirements.txt", "other\n"),
            ("pyproject.toml", "[project]\ndependencies = [\"third\"]\n"),
            ("package.json", "{\"dependencies\": {\"x\": \"1\"}}"),
        ];
        let lines = |script, language| {
            let found = find(&files, script, language).unwrap();
            (
                found.python.map(|python| python.lines()).unwrap_or_default(),
                found.node.is_some(),
            )
        };
        let python = ScriptLanguage::Python;
        assert_eq!(lines(Some("scripts/a.py"), python), (vec!["numpy".to_owned()], false));
        let both = vec!["openpyxl".to_owned(), "pandas".to_owned()];
        assert_eq!(lines(Some("scripts/b.py"), python), (both.clone(), false));
        assert_eq!(lines(None, ScriptLanguage::Unknown), (both, true));
        assert_eq!(lines(Some("x.mjs"), ScriptLanguage::Node), (Vec::new(), true));
        assert!(find(&files[1..2], Some("scripts/b.py"), python).unwrap().is_empty());
    }

    #[test]
    fn a_skill_with_installed_packages_of_node_needs_none() {
        let manifest = ("scripts/package.json", "{\"dependencies\": {\"x\": \"1\"}}");
        let installed = ("scripts/node_modules/.package-lock.json", "{}");
        let is_empty = |files: &[(&str, &str)]| find(files, None, ScriptLanguage::Node).unwrap().is_empty();
        assert!(!is_empty(&[manifest]));
        assert!(is_empty(&[manifest, installed]));
    }

    #[test]
    fn the_digest_is_that_of_the_packages() {
        let digest = |files: &[(&str, &str)]| find(files, None, ScriptLanguage::Unknown).unwrap().digest();
        let first = digest(&[("requirements.txt", "b==1\na # comment\n")]);
        assert_eq!(first, digest(&[("scripts/requirements.txt", "a\nb==1\nb==1\n")]));
        assert_ne!(first, digest(&[("requirements.txt", "b==2\na\n")]));
        let node = |range: &str| digest(&[("package.json", &format!("{{\"dependencies\":{{\"x\":\"{range}\"}}}}"))]);
        assert_ne!(node("1"), node("2"));
    }

    #[test]
    fn packages_of_an_operator_are_added_and_checked_alike() {
        let with = Declaration::of_requirements("--with", &["numpy".to_owned(), "pandas>2".to_owned()]).unwrap();
        let own = find(&[("requirements.txt", "openpyxl")], None, ScriptLanguage::Python).unwrap();
        let both = own.and(with).python.unwrap();
        assert_eq!(both.lines(), ["numpy", "openpyxl", "pandas>2"]);
        assert_eq!(both.place_of("OpenPyXL"), "requirements.txt:1");
        assert_eq!(both.place_of("et-xmlfile"), "requirements.txt");
        let refused = Declaration::of_requirements("--with", &["./x".to_owned()]).unwrap_err();
        assert!(refused.to_string().starts_with("--with:1: ./x: a path"), "{refused}");
    }

    #[test]
    fn huge_and_binary_files_are_refused() {
        let huge = "#".repeat(usize::try_from(MAX_DECLARATION_BYTES).unwrap());
        assert!(find(&[("requirements.txt", &huge)], None, ScriptLanguage::Python).is_err());
        let binary = detect(&|_| Ok(Some(vec![0xff])), None, ScriptLanguage::Python);
        assert!(binary.unwrap_err().to_string().contains("not UTF-8"));
        let unreadable = detect(
            &|_| Err(io::ErrorKind::PermissionDenied.into()),
            None,
            ScriptLanguage::Python,
        );
        assert!(matches!(unreadable, Err(DetectError::Read { .. })));
    }
}
