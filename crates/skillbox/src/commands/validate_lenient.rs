//! `skillbox validate --lenient`: how the catalog loads skills, with all diagnostics.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use skillbox_model::{Diagnostic, ExitCode, RelPath, Severity};
use skillbox_repository::{MAX_SKILL_MD_BYTES, Repository, ScanOptions, Scope, SkillDir, Source, strict};
use skillbox_runtime::hook_diagnostics;

use super::output::CommandOutput;
use crate::catalog;
use crate::render::{Page, Span, Tone, plural};

/// The results for all paths.
#[derive(Serialize)]
pub struct LenientReport {
    valid: bool,
    results: Vec<PathReport>,
}

/// The result for one path: a skill, or a directory of skills.
#[derive(Serialize)]
pub struct PathReport {
    path: String,
    valid: bool,
    skills: Vec<String>,
    diagnostics: Vec<Diagnostic>,
    /// The files that diagnostics refer to, for excerpts.
    #[serde(skip)]
    texts: BTreeMap<PathBuf, String>,
}

pub fn run(paths: &[PathBuf]) -> LenientReport {
    let results: Vec<_> = paths.iter().map(|path| check_path(path)).collect();
    LenientReport {
        valid: results.iter().all(|result| result.valid),
        results,
    }
}

/// Loads the skills at a path and checks each one as a whole, which the catalog does not.
pub fn check_path(path: &Path) -> PathReport {
    let dir = strict::skill_directory(path);
    let source = Source::Directory {
        path: dir.clone(),
        scope: Scope::Project,
    };
    let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
    let mut diagnostics = catalog.diagnostics().to_vec();
    for entry in catalog.skills() {
        let found = entry.open().and_then(|dir| dir.check());
        diagnostics.extend(found.unwrap_or_else(|error| vec![catalog::unreadable_skill(entry, &error)]));
        diagnostics.extend(hook_diagnostics(entry));
    }
    diagnostics.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
    if catalog.is_empty() && diagnostics.is_empty() {
        diagnostics.push(no_skill_diagnostic(&dir));
    }
    PathReport {
        path: dir.display().to_string(),
        valid: diagnostics
            .iter()
            .all(|diagnostic| diagnostic.severity < Severity::Error),
        skills: catalog.skills().map(|entry| entry.name().to_string()).collect(),
        texts: read_texts(&diagnostics),
        diagnostics,
    }
}

/// Reads each file that a diagnostic refers to. Unreadable files have no excerpt.
fn read_texts(diagnostics: &[Diagnostic]) -> BTreeMap<PathBuf, String> {
    let mut texts = BTreeMap::new();
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.line.is_some()) {
        if texts.contains_key(&diagnostic.path) {
            continue;
        }
        let (Some(dir), Some(file)) = (diagnostic.path.parent(), diagnostic.path.file_name()) else {
            continue;
        };
        let Ok(file) = RelPath::parse(file.as_bytes()) else {
            continue;
        };
        if let Ok(bytes) = SkillDir::open(dir).and_then(|dir| dir.read_file(&file, MAX_SKILL_MD_BYTES)) {
            texts.insert(diagnostic.path.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    texts
}

fn no_skill_diagnostic(dir: &Path) -> Diagnostic {
    Diagnostic {
        code: "no_skill",
        severity: Severity::Error,
        path: dir.to_owned(),
        line: None,
        column: None,
        message: "contains no SKILL.md, at any depth".to_owned(),
        hint: Some("pass the directory of a skill, or a directory of skills".to_owned()),
    }
}

impl CommandOutput for LenientReport {
    fn render(&self, page: &mut Page) {
        for result in &self.results {
            result.render_diagnostics(page);
        }
        page.blank_line();
        for result in &self.results {
            let (tone, word) = if result.valid {
                (Tone::Good, "ok")
            } else {
                (Tone::Bad, "FAILED")
            };
            let facts = format!(" {}: {}", page.short_path(result.path.as_ref()), result.counts());
            page.line(&[Span::new(tone, word), Span::plain(facts)]);
        }
    }

    fn exit_code(&self) -> u8 {
        if self.valid { ExitCode::OK } else { ExitCode::FAILURE }
    }
}

impl PathReport {
    /// Every diagnostic with its excerpt.
    pub fn render_diagnostics(&self, page: &mut Page) {
        for diagnostic in &self.diagnostics {
            page.blank_line();
            let text = self.texts.get(&diagnostic.path).map_or("", String::as_str);
            page.diagnostic_with_excerpt(diagnostic, text);
        }
    }

    fn counts(&self) -> String {
        let count = |severity| {
            self.diagnostics
                .iter()
                .filter(|diagnostic| diagnostic.severity == severity)
                .count()
        };
        let mut parts = vec![plural(self.skills.len(), "skill") + " loaded"];
        for (severity, noun) in [
            (Severity::Error, "error"),
            (Severity::Warning, "warning"),
            (Severity::Info, "note"),
        ] {
            if count(severity) > 0 {
                parts.push(plural(count(severity), noun));
            }
        }
        parts.join(", ")
    }
}
