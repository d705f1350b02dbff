//! `skillbox validate --lenient`: what the catalogue makes of skills, and everything there is to say about them.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use skillbox_model::{Diagnostic, ExitCode, RelPath, Severity};
use skillbox_repository::{MAX_SKILL_MD_BYTES, Repository, ScanOptions, Scope, SkillDir, Source, strict};

use super::Answer;
use crate::catalogue;
use crate::render::{Page, Span, Tone, plural};

/// The verdicts over everything that was named.
#[derive(Serialize)]
pub struct Examination {
    valid: bool,
    results: Vec<Examined>,
}

/// One path that was named: a skill, or a directory of skills.
#[derive(Serialize)]
pub struct Examined {
    path: String,
    valid: bool,
    skills: Vec<String>,
    diagnostics: Vec<Diagnostic>,
    /// The files that findings point into, for excerpts.
    #[serde(skip)]
    texts: BTreeMap<PathBuf, String>,
}

pub fn run(paths: &[PathBuf]) -> Examination {
    let results: Vec<_> = paths.iter().map(|path| examine(path)).collect();
    Examination {
        valid: results.iter().all(|result| result.valid),
        results,
    }
}

/// Loads what is there, and looks at each skill as a whole, which the catalogue does not.
pub fn examine(path: &Path) -> Examined {
    let dir = strict::skill_path(path);
    let source = Source::Directory {
        path: dir.clone(),
        scope: Scope::Project,
    };
    let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
    let mut diagnostics = catalog.diagnostics().to_vec();
    for entry in catalog.skills() {
        let advice = entry.open().and_then(|dir| dir.advice());
        diagnostics.extend(advice.unwrap_or_else(|error| vec![catalogue::unreadable(entry, &error)]));
    }
    diagnostics.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
    if catalog.is_empty() && diagnostics.is_empty() {
        diagnostics.push(nothing_here(&dir));
    }
    Examined {
        path: dir.display().to_string(),
        valid: diagnostics.iter().all(|finding| finding.severity < Severity::Error),
        skills: catalog.skills().map(|entry| entry.name().to_string()).collect(),
        texts: texts_of(&diagnostics),
        diagnostics,
    }
}

/// Reads each file that a finding has a line in; what cannot be read has no excerpt.
fn texts_of(diagnostics: &[Diagnostic]) -> BTreeMap<PathBuf, String> {
    let mut texts = BTreeMap::new();
    for finding in diagnostics.iter().filter(|finding| finding.line.is_some()) {
        if texts.contains_key(&finding.path) {
            continue;
        }
        let (Some(dir), Some(file)) = (finding.path.parent(), finding.path.file_name()) else {
            continue;
        };
        let Ok(file) = RelPath::parse(file.as_bytes()) else {
            continue;
        };
        if let Ok(bytes) = SkillDir::open(dir).and_then(|dir| dir.read(&file, MAX_SKILL_MD_BYTES)) {
            texts.insert(finding.path.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    texts
}

fn nothing_here(dir: &Path) -> Diagnostic {
    Diagnostic {
        code: "no_skill",
        severity: Severity::Error,
        path: dir.to_owned(),
        line: None,
        column: None,
        message: "has no SKILL.md, neither itself nor below".to_owned(),
        hint: Some("name a skill's directory, or a directory of skills".to_owned()),
    }
}

impl Answer for Examination {
    fn render(&self, page: &mut Page) {
        for result in &self.results {
            result.render_findings(page);
        }
        page.gap();
        for result in &self.results {
            let (tone, word) = if result.valid {
                (Tone::Good, "ok")
            } else {
                (Tone::Bad, "FAILED")
            };
            let facts = format!(" {}: {}", page.short(result.path.as_ref()), result.counts());
            page.line(&[Span::new(tone, word), Span::plain(facts)]);
        }
    }

    fn exit_code(&self) -> u8 {
        if self.valid { ExitCode::OK } else { ExitCode::BAD }
    }
}

impl Examined {
    /// Every finding with its excerpt.
    pub fn render_findings(&self, page: &mut Page) {
        for finding in &self.diagnostics {
            page.gap();
            let text = self.texts.get(&finding.path).map_or("", String::as_str);
            page.excerpt(finding, text);
        }
    }

    fn counts(&self) -> String {
        let count = |severity| {
            self.diagnostics
                .iter()
                .filter(|finding| finding.severity == severity)
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
