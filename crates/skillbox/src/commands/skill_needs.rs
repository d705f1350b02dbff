//! The needs that a skill declares, and which of them are not granted.

use serde::Serialize;
use skillbox_model::{Digest, Grants};
use skillbox_repository::{Scope, SkillEntry};
use skillbox_runtime::declared_needs;
use skillbox_trust::{ApprovalState, approve_command};

use super::points_in_time::now_ms;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone};
use crate::secret_source::configured_secrets;
use crate::settings::HostFlags;
use crate::trust_setup::{has_approvals, open_trust, trust_failure};

/// The needs of a skill.
#[derive(Serialize)]
pub struct SkillNeeds {
    /// What the skill declares.
    declared: Grants,
    /// The declared needs that are not granted.
    missing: Grants,
    /// The command that grants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_with: Option<String>,
}

impl SkillNeeds {
    /// The needs of this version of a skill; none if it declares nothing.
    pub fn of(entry: &SkillEntry, digest: &Digest, context: &Context<'_>) -> Result<Option<Self>, Failure> {
        let (declared, _) = declared_needs(entry);
        if declared.is_empty() {
            return Ok(None);
        }
        let missing = granted(entry, digest, context)?.missing(&declared);
        Ok(Some(Self {
            grant_with: (!missing.is_empty()).then(|| approve_command(entry.name(), &missing)),
            declared,
            missing,
        }))
    }

    /// Renders the needs below the other fields of a skill.
    pub fn render(&self, page: &mut Page) {
        page.heading("declared needs");
        page.labelled(2, Span::plain("declared"), 9, Tone::Plain, &self.declared.to_string());
        match &self.grant_with {
            None => page.labelled(2, Span::plain("granted"), 9, Tone::Plain, "all of them"),
            Some(command) => {
                let text = format!("{}; grant it with `{command}`", self.missing);
                page.labelled(2, Span::new(Tone::Warning, "missing"), 9, Tone::Plain, &text);
            }
        }
    }
}

/// What the configuration and the approval of this version grant.
fn granted(entry: &SkillEntry, digest: &Digest, context: &Context<'_>) -> Result<Grants, Failure> {
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let trust = open_trust(context)?;
    let is_version_checked = entry.scope() == Scope::BuiltIn || !trust.settings().policy.accepts_every_version();
    let secrets = configured_secrets(context.layers);
    let configured = Grants {
        network: host.allow_net.iter().cloned().collect(),
        secrets: secrets.granted_to(entry.name(), digest, entry.dir(), is_version_checked),
        ..Grants::default()
    };
    // Without an approval, the directory of approvals need not be created.
    let approval = if has_approvals(context) {
        let approvals = trust.approvals().map_err(trust_failure)?;
        approvals.find(digest).map_err(trust_failure)?
    } else {
        None
    };
    let valid = approval.filter(|approval| approval.state(now_ms()) == ApprovalState::Valid);
    Ok(valid.map_or_else(|| configured.clone(), |approval| configured.union(&approval.grants)))
}
