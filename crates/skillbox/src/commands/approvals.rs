//! `skillbox approvals`: who let which versions of skills run.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_model::{Digest, ErrorCode, ExitCode, SkillName};
use skillbox_runtime::Trust;
use skillbox_trust::{
    Approval, ApprovalState, ManagedEntity, ManagementActivity, Revocation, TrustError, export_approvals,
    read_exported_approvals, read_public_key,
};

use super::output::{CommandOutput, print_output};
use super::points_in_time::{format_time, now_ms};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::settings::TrustFlags;
use crate::trust_setup::{open_trust, trust_failure};

/// The largest export that is read.
const MAX_EXPORT_BYTES: u64 = 256 << 20;

/// List, show, revoke and transfer approvals
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox approvals list",
    "skillbox approvals show csv-report             the newest one, with its files",
    "skillbox approvals revoke csv-report           every version of the skill",
    "skillbox approvals revoke sha256:… --note 'CVE in its parser'",
    "skillbox approvals export > approvals.signed   for another host",
    "skillbox approvals import approvals.signed --key review-host.pub",
))]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List all approvals, the newest first
    List,
    /// Show an approval with its files
    Show {
        /// Name of the skill, or the digest of a version
        #[arg(value_name = "NAME|DIGEST")]
        skill: String,
    },
    /// End the approvals of a skill, or of one version
    Revoke {
        /// Name of the skill, or the digest of a version
        #[arg(value_name = "NAME|DIGEST")]
        skill: String,
        /// Note to store with the revocation
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Write the valid approvals to stdout, signed with the key of this host
    Export,
    /// Add the approvals that another host exported
    Import {
        /// The export
        file: PathBuf,
        /// Public key of the other host: the `host.pub` in its trust directory
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
}

#[derive(Serialize)]
struct ApprovalListing {
    approvals: Vec<ApprovalSummary>,
    /// Files that are not valid approvals.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct ApprovalSummary {
    #[serde(flatten)]
    approval: ShownApproval,
    state: ApprovalState,
}

#[derive(Serialize)]
struct ShownApproval {
    skill: SkillName,
    digest: Digest,
    grants: skillbox_model::Grants,
    approved_by: String,
    approved_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<skillbox_model::PublisherName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation: Option<Revocation>,
}

#[derive(Serialize)]
struct ApprovalDetails {
    #[serde(flatten)]
    summary: ApprovalSummary,
    files: skillbox_trust::SkillManifest,
}

#[derive(Serialize)]
struct Imported {
    imported: Vec<ApprovalSummary>,
    /// Digests whose approval was revoked on this host.
    revoked_here: Vec<Digest>,
}

#[derive(Serialize)]
struct Revoked {
    revoked: Vec<ApprovalSummary>,
}

pub fn run(args: &ApprovalsArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let trust = open_trust(context)?;
    match &args.verb {
        Verb::List => print_output(&list(&trust)?, context, terminal),
        Verb::Show { skill } => {
            let approval = find(&trust, skill)?.into_iter().next();
            let approval = approval.ok_or_else(|| not_found(skill))?;
            let details = ApprovalDetails {
                files: approval.files.clone(),
                summary: ApprovalSummary::of(approval),
            };
            print_output(&details, context, terminal)
        }
        Verb::Revoke { skill, note } => {
            let revoked = revoke(&trust, skill, note.as_deref())?;
            print_output(&Revoked { revoked }, context, terminal)
        }
        Verb::Export => {
            let text = export(&trust).map_err(trust_failure)?;
            terminal.write_stdout(text.as_bytes())?;
            Ok(ExitCode::OK)
        }
        Verb::Import { file, key } => print_output(&import(&trust, file, key)?, context, terminal),
    }
}

fn export(trust: &Trust) -> Result<String, TrustError> {
    let approvals = trust.approvals()?.list()?.approvals.into_iter();
    let now = now_ms();
    let valid = approvals.filter(|approval| approval.state(now) == ApprovalState::Valid);
    Ok(export_approvals(valid.collect(), &*trust.host_key()?))
}

fn import(trust: &Trust, file: &Path, key: &Path) -> Result<Imported, Failure> {
    let public_key = read_public_key(key).map_err(trust_failure)?;
    let mut text = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_EXPORT_BYTES).read_to_end(&mut text))
        .map_err(|error| Failure::new(ErrorCode::NotFound, format!("cannot read {}: {error}", file.display())))?;
    let approvals = read_exported_approvals(&text, file, &public_key).map_err(trust_failure)?;
    let store = trust.approvals().map_err(trust_failure)?;
    let mut result = Imported {
        imported: Vec::new(),
        revoked_here: Vec::new(),
    };
    for approval in approvals {
        let known = store.find(&approval.digest).map_err(trust_failure)?;
        // A decision of this host is stronger than one of another host.
        if known.is_some_and(|known| known.revocation.is_some()) {
            result.revoked_here.push(approval.digest);
            continue;
        }
        let entity = ManagedEntity {
            kind: "approval",
            name: approval.skill.to_string(),
            uid: Some(approval.digest.to_string()),
        };
        let message = format!("imported from {}, approved by {}", file.display(), approval.approved_by);
        trust
            .record(ManagementActivity::Create, &entity, &message)
            .and_then(|()| store.insert(&approval))
            .map_err(trust_failure)?;
        result.imported.push(ApprovalSummary::of(approval));
    }
    Ok(result)
}

fn list(trust: &Trust) -> Result<ApprovalListing, Failure> {
    let list = trust
        .approvals()
        .and_then(|approvals| approvals.list())
        .map_err(trust_failure)?;
    Ok(ApprovalListing {
        approvals: list.approvals.into_iter().map(ApprovalSummary::of).collect(),
        problems: list.problems.iter().map(ToString::to_string).collect(),
    })
}

/// The approvals of a skill or of a digest, the newest first.
fn find(trust: &Trust, skill: &str) -> Result<Vec<Approval>, Failure> {
    let approvals = trust.approvals().map_err(trust_failure)?;
    if skill.starts_with("sha256:") {
        let digest = Digest::parse(skill).map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error))?;
        let found = approvals.find(&digest).map_err(trust_failure)?;
        return Ok(found.map(|approval| Approval::clone(&approval)).into_iter().collect());
    }
    let list = approvals.list().map_err(trust_failure)?;
    let of_skill = list.approvals.into_iter();
    Ok(of_skill.filter(|approval| approval.skill.as_str() == skill).collect())
}

fn not_found(skill: &str) -> Failure {
    Failure::new(ErrorCode::NotFound, format!("there is no approval of {skill}"))
        .with_hint("see `skillbox approvals list`")
}

fn revoke(trust: &Trust, skill: &str, note: Option<&str>) -> Result<Vec<ApprovalSummary>, Failure> {
    let found = find(trust, skill)?;
    if found.is_empty() {
        return Err(not_found(skill));
    }
    let mut revoked = Vec::new();
    for approval in found.into_iter().filter(|approval| approval.revocation.is_none()) {
        let revocation = Revocation {
            revoked_by: trust.settings().user.clone(),
            revoked_at_ms: now_ms(),
            note: note.map(str::to_owned),
        };
        let entity = ManagedEntity {
            kind: "approval",
            name: approval.skill.to_string(),
            uid: Some(approval.digest.to_string()),
        };
        let ended = trust
            .approvals()
            .and_then(|approvals| approvals.revoke(&approval.digest, revocation))
            .map_err(trust_failure)?;
        trust
            .record(ManagementActivity::Delete, &entity, note.unwrap_or("revoked"))
            .map_err(trust_failure)?;
        revoked.extend(ended.map(ApprovalSummary::of));
    }
    Ok(revoked)
}

impl ApprovalSummary {
    fn of(approval: Approval) -> Self {
        Self {
            state: approval.state(now_ms()),
            approval: ShownApproval {
                skill: approval.skill,
                digest: approval.digest,
                grants: approval.grants,
                approved_by: approval.approved_by,
                approved_at: format_time(approval.approved_at_ms),
                expires_at: approval.expires_at_ms.map(format_time),
                note: approval.note,
                signer: approval.signer,
                revocation: approval.revocation,
            },
        }
    }

    fn render(&self, page: &mut Page) {
        let (tone, word) = match self.state {
            ApprovalState::Valid => (Tone::Good, "valid"),
            ApprovalState::Expired => (Tone::Warning, "expired"),
            ApprovalState::Revoked => (Tone::Bad, "revoked"),
        };
        let approval = &self.approval;
        page.line(&[
            Span::new(Tone::Name, approval.skill.as_str()),
            Span::plain("  "),
            Span::new(tone, word),
        ]);
        page.labelled(
            2,
            Span::new(Tone::Dim, "digest"),
            12,
            Tone::Plain,
            &approval.digest.to_string(),
        );
        let mut by = format!("by {} at {}", approval.approved_by, approval.approved_at);
        if let Some(time) = &approval.expires_at {
            by.push_str(&format!(", until {time}"));
        }
        page.labelled(2, Span::new(Tone::Dim, "approved"), 12, Tone::Plain, &by);
        page.labelled(
            2,
            Span::new(Tone::Dim, "grants"),
            12,
            Tone::Plain,
            &approval.grants.to_string(),
        );
        if let Some(note) = &approval.note {
            page.labelled(2, Span::new(Tone::Dim, "note"), 12, Tone::Plain, note);
        }
        if let Some(revocation) = &approval.revocation {
            let text = format!(
                "by {} at {}{}",
                revocation.revoked_by,
                format_time(revocation.revoked_at_ms),
                revocation
                    .note
                    .as_ref()
                    .map(|note| format!(": {note}"))
                    .unwrap_or_default()
            );
            page.labelled(2, Span::new(Tone::Dim, "revoked"), 12, Tone::Plain, &text);
        }
    }
}

impl CommandOutput for ApprovalListing {
    fn render(&self, page: &mut Page) {
        if self.approvals.is_empty() {
            page.line(&[Span::plain("no skill is approved")]);
        }
        for approval in &self.approvals {
            approval.render(page);
        }
        for problem in &self.problems {
            page.labelled(0, Span::new(Tone::Bad, "invalid"), 9, Tone::Plain, problem);
        }
    }

    fn exit_code(&self) -> u8 {
        match self.problems.is_empty() {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}

impl CommandOutput for ApprovalDetails {
    fn render(&self, page: &mut Page) {
        self.summary.render(page);
        page.heading("files");
        for (path, _, digest) in self.files.files() {
            page.labelled(2, Span::plain(path.to_string()), 34, Tone::Dim, &digest.to_string());
        }
    }
}

impl CommandOutput for Imported {
    fn render(&self, page: &mut Page) {
        let text = plural(self.imported.len(), "approval");
        page.labelled(0, Span::new(Tone::Good, "imported"), 10, Tone::Plain, &text);
        for approval in &self.imported {
            approval.render(page);
        }
        for digest in &self.revoked_here {
            let text = format!("{digest} stays revoked on this host");
            page.labelled(0, Span::new(Tone::Warning, "skipped"), 10, Tone::Plain, &text);
        }
    }
}

impl CommandOutput for Revoked {
    fn render(&self, page: &mut Page) {
        let text = plural(self.revoked.len(), "approval");
        page.labelled(0, Span::new(Tone::Good, "revoked"), 9, Tone::Plain, &text);
        for approval in &self.revoked {
            approval.render(page);
        }
    }
}
