//! `skillbox validate --lenient`: what the catalogue makes of skills, and everything there is to say about them.

use std::path::{Path, PathBuf};

use serde::Serialize;
use skillbox_model::{Diagnostic, ExitCode, Severity};
use skillbox_repository::{ParseCode, Repository, ScanOptions, Scope, SkillEntry, Source, parse_lenient, strict};

use super::Answer;
use crate::catalogue;
use crate::render::{Page, Span, Tone, findings, plural};

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
}

pub fn run(paths: &[PathBuf]) -> Examination {
    let results: Vec<_> = paths.iter().map(|path| examine(path)).collect();
    Examination {
        valid: results.iter().all(|result| result.valid),
        results,
    }
}

/// Loads what is there, and reads each file as a whole, which the catalogue does not.
pub fn examine(path: &Path) -> Examined {
    let dir = strict::skill_path(path);
    let source = Source::Directory {
        path: dir.clone(),
        scope: Scope::Project,
    };
    let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
    let is_of_a_text = |finding: &&Diagnostic| ParseCode::ALL.iter().any(|code| code.as_str() == finding.code);
    let is_read_again =
        |finding: &&Diagnostic| is_of_a_text(finding) && catalog.skills().any(|entry| entry.path() == finding.path);
    let mut diagnostics: Vec<_> = catalog
        .diagnostics()
        .iter()
        .filter(|finding| !is_read_again(finding))
        .cloned()
        .collect();
    for entry in catalog.skills() {
        diagnostics.extend(read_whole(entry));
    }
    diagnostics.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
    if catalog.is_empty() && diagnostics.is_empty() {
        diagnostics.push(nothing_here(&dir));
    }
    Examined {
        path: dir.display().to_string(),
        valid: diagnostics.iter().all(|finding| finding.severity < Severity::Error),
        skills: catalog.skills().map(|entry| entry.name().to_string()).collect(),
        diagnostics,
    }
}

fn read_whole(entry: &SkillEntry) -> Vec<Diagnostic> {
    let text = entry.open().and_then(|dir| dir.instructions());
    let directory = entry.dir().file_name().unwrap_or_default().to_string_lossy();
    match text {
        Ok(text) => parse_lenient(entry.path(), &directory, text.whole.as_bytes()).diagnostics,
        Err(error) => vec![catalogue::unreadable(entry, &error)],
    }
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
                (Tone::Bad, "bad")
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
            findings::one(page, finding);
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
