//! What a careful person needs to see of a skill before it may run.

use std::io::Read;

use serde::Serialize;
use skillbox_model::{ByteSize, Digest, Grants, PublisherName, RelPath, SkillName};
use skillbox_repository::{SkillEntry, frontmatter_json};
use skillbox_runtime::{Runtime, declared_needs};
use skillbox_trust::{Approval, ChangeKind, FileKind, SignatureStatus, SkillManifest};

use super::listed_files::{ListedFiles, MAX_SEARCHED_BYTES, unreadable};
use super::oddities::{Oddity, find_in_content, find_in_name};
use super::text_diff::{DiffLine, diff_lines};
use crate::commands::points_in_time::{format_time, now_ms};
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, plural};
use crate::trust_setup::trust_failure;

/// A version of a skill, as a reviewer sees it.
#[derive(Serialize)]
pub struct Review {
    pub skill: SkillName,
    pub digest: Digest,
    description: String,
    path: String,
    source: String,
    signature: String,
    /// What the skill declares that it needs.
    declared_needs: Grants,
    /// Declared needs that this approval does not grant.
    not_granted: Grants,
    /// Commands that run at events of an agent, without a call.
    hooks: Option<serde_json::Value>,
    allowed_tools: Option<Vec<Box<str>>>,
    last_approval: Option<LastApproval>,
    changes: Vec<ReviewedChange>,
    files: Vec<ReviewedFile>,
    oddities: Vec<Oddity>,
    warnings: Vec<String>,
    #[serde(skip)]
    pub manifest: SkillManifest,
    #[serde(skip)]
    pub signature_status: SignatureStatus,
}

#[derive(Serialize)]
struct LastApproval {
    digest: Digest,
    approved_by: String,
    approved_at: String,
    state: skillbox_trust::ApprovalState,
    grants: Grants,
}

#[derive(Serialize)]
struct ReviewedChange {
    path: RelPath,
    change: ChangeKind,
    /// The changed lines, if the approved version is still stored and both are texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Vec<DiffLine>>,
}

#[derive(Serialize)]
struct ReviewedFile {
    path: RelPath,
    kind: FileKind,
    is_script: bool,
    size_bytes: u64,
    lines: usize,
    is_text: bool,
    /// Where a symbolic link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_target: Option<String>,
    /// The first line of a script, if it names an interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
    sha256: Digest,
}

impl Review {
    /// Reads the skill as it is now. The snapshot that is kept lets the next review show the changed lines.
    pub fn read(runtime: &Runtime, entry: &SkillEntry, grants: &Grants) -> Result<Self, Failure> {
        let failure = |error: skillbox_runtime::RunError| Failure::from_body(error.body());
        let files =
            skillbox_runtime::read_skill_files(entry, &runtime.trust().settings().publishers).map_err(failure)?;
        let digest = files.manifest.digest();
        runtime.keep_snapshot(entry).map_err(failure)?;
        let directory = entry.open().map_err(|error| unreadable(&error))?;
        let last = runtime
            .trust()
            .approvals()
            .and_then(|approvals| approvals.last_of(entry.name()))
            .map_err(trust_failure)?;
        let (declared, warnings) = declared_needs(entry);
        let mut review = Self {
            skill: entry.name().clone(),
            digest,
            description: entry.meta.description.to_string(),
            path: entry.dir().display().to_string(),
            source: entry.source_label().to_owned(),
            signature: signature_text(&files.signature),
            not_granted: grants.missing(&declared),
            declared_needs: declared,
            hooks: None,
            allowed_tools: entry.meta.allowed_tools.clone(),
            last_approval: last.as_ref().map(LastApproval::of),
            changes: Vec::new(),
            files: Vec::new(),
            oddities: Vec::new(),
            warnings,
            manifest: files.manifest,
            signature_status: files.signature,
        };
        let reader = ListedFiles {
            directory: &directory,
            root: entry.dir(),
            manifest: &review.manifest.clone(),
        };
        review.add_files(&reader)?;
        let skill_md = entry
            .skill_md_name()
            .to_str()
            .and_then(|name| RelPath::parse(name).ok());
        if let Some(text) = skill_md.map(|path| reader.read(&path)).transpose()?.flatten() {
            let fields = frontmatter_json(&String::from_utf8_lossy(&text));
            review.hooks = fields.and_then(|mut fields| fields.remove("hooks"));
        }
        if let Some(last) = last.filter(|last| last.digest != digest) {
            review.changes = changes_since(&last, runtime, &reader)?;
        }
        Ok(review)
    }

    /// The publisher with a valid signature.
    pub fn signer(&self) -> Option<PublisherName> {
        match &self.signature_status {
            SignatureStatus::Valid(signatures) => Some(signatures.first()?.publisher.clone()),
            _ => None,
        }
    }

    fn add_files(&mut self, reader: &ListedFiles<'_>) -> Result<(), Failure> {
        for (path, kind, sha256) in reader.manifest.files() {
            let text = path.to_string();
            self.oddities.extend(find_in_name(&text));
            let mut note = |what: &str| {
                self.oddities.push(Oddity {
                    path: text.clone(),
                    line: None,
                    what: what.to_owned(),
                });
            };
            let mut link_target = None;
            let content = match kind {
                FileKind::Link => {
                    let target = reader.link_target(path)?;
                    note(&format!("a symbolic link to {target}"));
                    link_target = Some(target);
                    Some(Vec::new())
                }
                FileKind::File | FileKind::Executable => reader.read(path)?,
            };
            let size_bytes = match &content {
                Some(content) => content.len() as u64,
                None => {
                    note("too large to be searched");
                    reader.size(path)?
                }
            };
            let content = content.unwrap_or_default();
            let interpreter = interpreter_of(&content);
            let is_script = kind == FileKind::Executable || text.starts_with("scripts/") || interpreter.is_some();
            self.oddities.extend(find_in_content(&text, &content, is_script));
            self.files.push(ReviewedFile {
                path: path.clone(),
                kind,
                is_script,
                size_bytes,
                is_text: std::str::from_utf8(&content).is_ok(),
                link_target,
                lines: content.iter().filter(|byte| **byte == b'\n').count(),
                interpreter,
                sha256: *sha256,
            });
        }
        self.files.sort_by_key(|file| !file.is_script);
        Ok(())
    }

    /// Shows the review.
    pub fn render(&self, page: &mut Page) {
        page.line(&[Span::new(Tone::Name, self.skill.as_str())]);
        page.paragraph(2, Tone::Plain, &self.description);
        // On a line of its own the digest is whole at 80 columns.
        page.line(&[Span::plain("  "), Span::new(Tone::Dim, self.digest.to_string())]);
        page.blank_line();
        let field = |page: &mut Page, label: &str, tone: Tone, text: &str| {
            page.labelled(0, Span::new(Tone::Dim, label), 11, tone, text);
        };
        field(page, "path", Tone::Plain, &page.short_path(self.path.as_ref()));
        let signature_tone = match &self.signature_status {
            SignatureStatus::Valid(_) => Tone::Good,
            SignatureStatus::Unsigned => Tone::Plain,
            SignatureStatus::Invalid(_) => Tone::Bad,
        };
        field(page, "signature", signature_tone, &self.signature);
        let last = match &self.last_approval {
            None => "never".to_owned(),
            Some(last) if last.digest == self.digest => {
                format!("this version, by {} at {}", last.approved_by, last.approved_at)
            }
            Some(last) => format!(
                "{} by {} at {}",
                short_digest(&last.digest),
                last.approved_by,
                last.approved_at
            ),
        };
        field(page, "approved", Tone::Plain, &last);
        field(page, "needs", Tone::Plain, &self.declared_needs.to_string());
        if !self.not_granted.is_empty() {
            let options = self.not_granted.options().join(" ");
            field(
                page,
                "",
                Tone::Warning,
                &format!("not granted; grant it with {options}"),
            );
        }
        if let Some(tools) = &self.allowed_tools {
            field(page, "tools", Tone::Plain, &tools.join(", "));
        }
        if let Some(hooks) = &self.hooks {
            let mut label = "hooks";
            for (event, command) in hook_commands(hooks) {
                field(page, label, Tone::Warning, &format!("{event}: {command}"));
                label = "";
            }
        }
        for warning in &self.warnings {
            field(page, "warning", Tone::Warning, warning);
        }
        self.render_oddities(page);
        self.render_changes(page);
        self.render_files(page);
    }

    fn render_oddities(&self, page: &mut Page) {
        if self.oddities.is_empty() {
            return;
        }
        page.heading("look at");
        for oddity in &self.oddities {
            let place = match oddity.line {
                Some(line) => format!("{}:{line}", oddity.path),
                None => oddity.path.clone(),
            };
            page.labelled(2, Span::new(Tone::Warning, place), 30, Tone::Plain, &oddity.what);
        }
    }

    fn render_changes(&self, page: &mut Page) {
        if self.changes.is_empty() {
            return;
        }
        page.heading("changed since the last approval");
        for change in &self.changes {
            let (tone, word) = match change.change {
                ChangeKind::Added => (Tone::Good, "added"),
                ChangeKind::Removed => (Tone::Bad, "removed"),
                _ => (Tone::Warning, "changed"),
            };
            page.labelled(2, Span::new(tone, word), 11, Tone::Plain, &change.path.to_string());
            for line in change.diff.iter().flatten() {
                let tone = match line.sign {
                    '+' => Tone::Good,
                    '-' => Tone::Bad,
                    _ => Tone::Dim,
                };
                page.verbatim(6, tone, &format!("{} {}", line.sign, line.text));
            }
        }
    }

    fn render_files(&self, page: &mut Page) {
        for (title, is_script) in [("scripts", true), ("other files", false)] {
            let files: Vec<_> = self.files.iter().filter(|file| file.is_script == is_script).collect();
            if files.is_empty() {
                continue;
            }
            page.heading(title);
            for file in files {
                let mut text = match (&file.link_target, file.is_text) {
                    (Some(target), _) => format!("link to {target}"),
                    (None, true) => format!("{}, {}", ByteSize(file.size_bytes), plural(file.lines, "line")),
                    (None, false) => format!("{}, not text", ByteSize(file.size_bytes)),
                };
                if file.kind == FileKind::Executable {
                    text.push_str(", executable");
                }
                if let Some(interpreter) = &file.interpreter {
                    text.push_str(&format!(", {interpreter}"));
                }
                page.labelled(2, Span::plain(file.path.to_string()), 34, Tone::Dim, &text);
            }
        }
    }
}

impl LastApproval {
    fn of(approval: &Approval) -> Self {
        Self {
            digest: approval.digest,
            approved_by: approval.approved_by.clone(),
            approved_at: format_time(approval.approved_at_ms),
            state: approval.state(now_ms()),
            grants: approval.grants.clone(),
        }
    }
}

/// The state of the signatures in words.
pub fn signature_text(status: &SignatureStatus) -> String {
    match status {
        SignatureStatus::Unsigned => "none".to_owned(),
        SignatureStatus::Invalid(problem) => format!("not valid: {problem}"),
        SignatureStatus::Valid(signatures) => {
            let names: Vec<String> = signatures
                .iter()
                .map(|signature| format!("valid, by {} ({:?})", signature.publisher, signature.method))
                .collect();
            names.join(", ")
        }
    }
}

/// The start of a digest, for people who compare it with one that is shown in full elsewhere.
fn short_digest(digest: &Digest) -> String {
    format!("sha256:{}…", &digest.hex()[..12])
}

/// The handlers of hooks, each with its event: a command as it is, another handler as JSON.
fn hook_commands(hooks: &serde_json::Value) -> Vec<(String, String)> {
    let mut commands = Vec::new();
    for (event, matchers) in hooks.as_object().into_iter().flatten() {
        // What does not have the usual form is shown as it is, so that nothing is hidden.
        let Some(matchers) = matchers.as_array().filter(|matchers| !matchers.is_empty()) else {
            commands.push((event.clone(), matchers.to_string()));
            continue;
        };
        for matcher in matchers {
            match matcher["hooks"].as_array().filter(|handlers| !handlers.is_empty()) {
                Some(handlers) => commands.extend(handlers.iter().map(|handler| {
                    let command = handler["command"].as_str();
                    (
                        event.clone(),
                        command.map_or_else(|| handler.to_string(), str::to_owned),
                    )
                })),
                None => commands.push((event.clone(), matcher.to_string())),
            }
        }
    }
    if commands.is_empty() {
        commands.push(("unknown form".to_owned(), hooks.to_string()));
    }
    commands
}

fn interpreter_of(head: &[u8]) -> Option<String> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().chars().take(60).collect())
}

fn changes_since(last: &Approval, runtime: &Runtime, reader: &ListedFiles<'_>) -> Result<Vec<ReviewedChange>, Failure> {
    let old = runtime.open_snapshot(&last.digest);
    let read_old = |path: &RelPath| {
        let mut content = Vec::new();
        let file = old.as_ref()?.open_file(path).ok()?;
        file.take(MAX_SEARCHED_BYTES).read_to_end(&mut content).ok()?;
        Some(content)
    };
    let to_reviewed = |change: skillbox_trust::FileChange| {
        let diff = match change.change {
            ChangeKind::Removed => None,
            ChangeKind::Added => reader.read(&change.path)?.and_then(|new| diff_lines(b"", &new)),
            ChangeKind::Content | ChangeKind::Mode => read_old(&change.path)
                .zip(reader.read(&change.path)?)
                .and_then(|(old, new)| diff_lines(&old, &new)),
        };
        Ok(ReviewedChange {
            path: change.path,
            change: change.change,
            diff,
        })
    };
    let changes = last.files.changes_to(reader.manifest);
    changes.into_iter().map(to_reviewed).collect()
}
