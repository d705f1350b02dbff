//! `skillbox approve`: a person reviews a version of a skill, and lets it run.

use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode, Grants, HostPort, ProfileName, SecretName};
use skillbox_repository::Catalog;
use skillbox_runtime::{Runtime, Trust};
use skillbox_trust::{Approval, ManagedEntity, ManagementActivity, SignatureStatus};

use super::review::Review;
use crate::catalog;
use crate::commands::output::{CommandOutput, print_output};
use crate::commands::points_in_time::{format_time, now_ms, parse_duration};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::runtime_setup;
use crate::settings::{HostFlags, TrustFlags};
use crate::trust_setup::trust_failure;

/// Review a skill and approve exactly this version of it
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "The approval names the digest of all files. Any change of the skill voids it. With `trust = \"approved\"`, only \
     approved versions run. Without a terminal, --yes approves what is printed.\n\n",
    crate::examples!(
    "skillbox approve csv-report                    review it, then answer",
    "skillbox approve csv-report --yes --note 'CR-17, reviewed by two'",
    "skillbox approve fetcher --network api.example.com:443 --secret API_TOKEN",
    "skillbox approve csv-report --expires 90d",
    )
))]
pub struct ApproveArgs {
    /// Names of the skills
    #[arg(required = true)]
    names: Vec<String>,
    /// Host that runs of this version may reach, as HOST[:PORT]; repeatable
    #[arg(long, value_name = "HOST", value_parser = parse_host)]
    network: Vec<HostPort>,
    /// Secret that runs of this version may use; repeatable
    #[arg(long, value_name = "NAME", value_parser = parse_secret)]
    secret: Vec<SecretName>,
    /// Profile weaker than the default that runs of this version may use; repeatable
    #[arg(long, value_name = "NAME", value_parser = parse_profile)]
    profile: Vec<ProfileName>,
    /// Let packages of this version be built from source
    #[arg(long)]
    allow_builds: bool,
    /// End the approval after this time, such as 90d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,
    /// Note to store with the approval
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    pub(in crate::commands) trust: TrustFlags,
}

fn parse_host(text: &str) -> Result<HostPort, String> {
    HostPort::parse(text).map_err(|error| error.to_string())
}

fn parse_secret(text: &str) -> Result<SecretName, String> {
    SecretName::parse(text).map_err(|error| error.to_string())
}

fn parse_profile(text: &str) -> Result<ProfileName, String> {
    ProfileName::parse(text).map_err(|error| error.to_string())
}

/// The result of `approve`.
#[derive(Serialize)]
struct ApproveResult {
    skills: Vec<ReviewedSkill>,
}

#[derive(Serialize)]
struct ReviewedSkill {
    #[serde(flatten)]
    review: Review,
    approved: bool,
    grants: Grants,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

pub fn run(args: &ApproveArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
    let catalog = runtime.catalog();
    let mut result = ApproveResult { skills: Vec::new() };
    let asks = !args.yes && io::stdin().is_terminal() && terminal.is_stderr_terminal();
    if !args.yes && !asks {
        let hint = "read the review of `skillbox approve NAME` on a terminal, or add --yes";
        return Err(Failure::usage("approve asks on a terminal, and there is none", hint));
    }
    for name in &args.names {
        let review = read_review(&runtime, &catalog, name, &args.grants())?;
        let approved = if asks { is_confirmed(&review, terminal)? } else { true };
        let expires_at_ms = args
            .expires
            .map(|duration| now_ms().saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)));
        if approved {
            store(runtime.trust(), &review, args, expires_at_ms)?;
        }
        result.skills.push(ReviewedSkill {
            review,
            approved,
            grants: args.grants(),
            expires_at: expires_at_ms.map(format_time),
        });
    }
    if asks && !context.as_json {
        let mut page = terminal.page();
        result.render_outcomes(&mut page);
        terminal.print(page)?;
        return Ok(result.exit_code());
    }
    print_output(&result, context, terminal)
}

fn read_review(runtime: &Runtime, catalog: &Catalog, name: &str, grants: &Grants) -> Result<Review, Failure> {
    let entry = catalog::find_skill(catalog, name)?;
    let review = Review::read(runtime, entry, grants)?;
    if let SignatureStatus::Invalid(problem) = &review.signature_status {
        let message = format!("the skill {name} has a signature that is not valid: {problem}");
        return Err(Failure::new(ErrorCode::SignatureInvalid, message).with_hint(format!(
            "ask its publisher, or remove the signature; see `skillbox verify {name}`"
        )));
    }
    Ok(review)
}

fn store(trust: &Trust, review: &Review, args: &ApproveArgs, expires_at_ms: Option<u64>) -> Result<(), Failure> {
    let user = trust.settings().user.clone();
    let mut approval = Approval::new(
        review.skill.clone(),
        review.manifest.clone(),
        args.grants(),
        user,
        now_ms(),
    );
    approval.expires_at_ms = expires_at_ms;
    approval.note = args.note.clone();
    approval.signer = review.signer();
    let entity = ManagedEntity {
        kind: "approval",
        name: review.skill.to_string(),
        uid: Some(review.digest.to_string()),
    };
    let granted = format!("grants {}{}", approval.grants, note_suffix(args.note.as_deref()));
    // The record comes first: an approval without a record would be worse than a record without its approval.
    trust
        .record(ManagementActivity::Create, &entity, &granted)
        .and_then(|()| trust.approvals()?.insert(&approval))
        .map_err(trust_failure)
}

fn note_suffix(note: Option<&str>) -> String {
    note.map(|note| format!("; {note}")).unwrap_or_default()
}

fn is_confirmed(review: &Review, terminal: &mut Terminal) -> Result<bool, Failure> {
    let mut page = terminal.page();
    review.render(&mut page);
    page.blank_line();
    let question = format!("Approve {} {}? [y/N]", review.skill, review.digest);
    page.line(&[Span::new(Tone::Heading, question)]);
    terminal.print_message(page)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl ApproveArgs {
    fn grants(&self) -> Grants {
        Grants {
            network: self.network.iter().cloned().collect(),
            secrets: self.secret.iter().cloned().collect(),
            source_builds: self.allow_builds,
            profiles: self.profile.iter().cloned().collect(),
        }
    }
}

impl ApproveResult {
    fn render_outcomes(&self, page: &mut Page) {
        for skill in &self.skills {
            let (tone, word) = match skill.approved {
                true => (Tone::Good, "approved"),
                false => (Tone::Warning, "not approved"),
            };
            let mut text = format!("{} {}", skill.review.skill, skill.review.digest);
            if let Some(time) = &skill.expires_at {
                text.push_str(&format!(", until {time}"));
            }
            page.labelled(0, Span::new(tone, word), 13, Tone::Plain, &text);
        }
    }
}

impl CommandOutput for ApproveResult {
    fn render(&self, page: &mut Page) {
        for skill in &self.skills {
            skill.review.render(page);
            page.blank_line();
        }
        self.render_outcomes(page);
    }

    fn exit_code(&self) -> u8 {
        match self.skills.iter().all(|skill| skill.approved) {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}
