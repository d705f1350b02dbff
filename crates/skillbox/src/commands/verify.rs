//! `skillbox verify`: checks the signatures of a skill.

use clap::Args;
use serde::Serialize;
use skillbox_model::{Digest, ExitCode, SkillName};
use skillbox_runtime::read_skill_files;
use skillbox_trust::{SignatureStatus, ValidSignature};

use super::output::{CommandOutput, print_output};
use crate::catalog;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::TrustFlags;
use crate::trust_setup::trust_settings;

/// Check the signatures of skills against the keys of the publishers
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox verify csv-report --publishers acme=acme.pub",
    "skillbox verify csv-report --json | jq -r .skills[0].status",
))]
pub struct VerifyArgs {
    /// Names of the skills
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Serialize)]
struct Verified {
    skills: Vec<VerifiedSkill>,
}

#[derive(Serialize)]
struct VerifiedSkill {
    skill: SkillName,
    digest: Digest,
    /// `valid`, `unsigned` or `invalid`.
    status: &'static str,
    signatures: Vec<ValidSignature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub fn run(args: &VerifyArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let settings = trust_settings(context)?;
    let repository = catalog::open_repository(context, terminal);
    let catalog = repository.catalog();
    let mut skills = Vec::new();
    for name in &args.names {
        let entry = catalog::find_skill(&catalog, name)?;
        let files = read_skill_files(entry, &settings.publishers).map_err(|error| Failure::from_body(error.body()))?;
        let (status, signatures, problem) = match files.signature {
            SignatureStatus::Valid(signatures) => ("valid", signatures, None),
            SignatureStatus::Unsigned => ("unsigned", Vec::new(), None),
            SignatureStatus::Invalid(problem) => ("invalid", Vec::new(), Some(problem)),
        };
        skills.push(VerifiedSkill {
            skill: entry.name().clone(),
            digest: files.manifest.digest(),
            status,
            signatures,
            problem,
        });
    }
    print_output(&Verified { skills }, context, terminal)
}

impl CommandOutput for Verified {
    fn render(&self, page: &mut Page) {
        for skill in &self.skills {
            let tone = match skill.status {
                "valid" => Tone::Good,
                "unsigned" => Tone::Warning,
                _ => Tone::Bad,
            };
            let text = format!("{} {}", skill.skill, skill.digest);
            page.labelled(0, Span::new(tone, skill.status), 10, Tone::Plain, &text);
            for signature in &skill.signatures {
                let text = format!("by {} ({:?})", signature.publisher, signature.method);
                page.labelled(10, Span::plain(""), 10, Tone::Dim, &text);
                if !signature.covers_modes {
                    let text = "it does not say which files are executable; a signature by `skillbox sign` does";
                    page.labelled(10, Span::plain(""), 10, Tone::Warning, text);
                }
            }
            if let Some(problem) = &skill.problem {
                page.labelled(10, Span::plain(""), 10, Tone::Plain, problem);
            }
        }
    }

    fn exit_code(&self) -> u8 {
        match self.skills.iter().all(|skill| skill.status == "valid") {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}
