//! `skillbox list`: every skill that is found, and what was odd on the way.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use skillbox_model::{Diagnostic, Digest};
use skillbox_repository::{Catalog, Scope, Shadowed, SkillEntry, SkillReadError};

use super::{Answer, Context};
use crate::catalogue::{self, ResourceCounts};
use crate::render::{Page, Progress, Span, Terminal, Tone, display_width, plural};

/// List the skills that are found
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox list                             the customary places",
    "skillbox list --skills ./skills           one directory only",
    "skillbox list --json | jq '.skills[].name'",
))]
pub struct ListArgs {
    /// Give each skill's digest too (reads every file)
    #[arg(long)]
    digest: bool,
}

/// What was found.
#[derive(Serialize)]
pub struct Listing {
    skills: Vec<Skill>,
    shadowed: Vec<Shadowed>,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Serialize)]
struct Skill {
    name: String,
    description: String,
    path: String,
    source: String,
    scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    resources: ResourceCounts,
}

pub fn run(args: &ListArgs, context: &Context<'_>, terminal: &Terminal) -> Listing {
    let catalog = catalogue::open(context, terminal).catalog();
    Progress::during(terminal.is_watched(), "counting resources", |progress| {
        Listing::of(&catalog, args.digest, progress)
    })
}

impl Listing {
    /// Describes a whole catalogue.
    pub fn of(catalog: &Catalog, with_digest: bool, progress: &Progress) -> Self {
        progress.expect(catalog.len());
        let mut diagnostics = catalog.diagnostics().to_vec();
        let skills = catalog.skills().map(|entry| {
            progress.step();
            describe(entry, with_digest, &mut diagnostics)
        });
        let skills = skills.collect();
        Self {
            skills,
            shadowed: catalog.shadowed().to_vec(),
            diagnostics,
        }
    }

    /// Resources, digest, and what the skill hides.
    fn facts(&self, skill: &Skill, page: &Page) -> String {
        let resources = Some(skill.resources.to_string()).filter(|text| !text.is_empty());
        let hidden = self
            .shadowed
            .iter()
            .filter(|shadowed| shadowed.name.as_str() == skill.name);
        let hides = hidden.map(|shadowed| {
            let from_elsewhere = shadowed.source != shadowed.by_source;
            let what = if from_elsewhere {
                Path::new(&*shadowed.source)
            } else {
                shadowed.path.as_path()
            };
            format!("hides the one of {}", page.short(what))
        });
        let digest = skill.digest.as_ref().map(Digest::to_string);
        resources
            .into_iter()
            .chain(hides)
            .chain(digest)
            .collect::<Vec<_>>()
            .join(" · ")
    }
}

fn describe(entry: &SkillEntry, with_digest: bool, diagnostics: &mut Vec<Diagnostic>) -> Skill {
    let (resources, digest) = look_into(entry, with_digest).unwrap_or_else(|error| {
        diagnostics.push(catalogue::unreadable(entry, &error));
        (ResourceCounts::default(), None)
    });
    Skill {
        name: entry.name().to_string(),
        description: entry.meta.description.to_string(),
        path: entry.path().display().to_string(),
        source: entry.source_label().to_owned(),
        scope: entry.scope(),
        digest,
        resources,
    }
}

fn look_into(entry: &SkillEntry, with_digest: bool) -> Result<(ResourceCounts, Option<Digest>), SkillReadError> {
    let dir = entry.open()?;
    let digest = if with_digest { Some(dir.digest()?) } else { None };
    Ok((ResourceCounts::of(&dir.resources()?), digest))
}

impl Answer for Listing {
    fn render(&self, page: &mut Page) {
        if self.skills.is_empty() {
            page.line(&[Span::plain("no skills found")]);
            page.paragraph(
                0,
                Tone::Dim,
                "`skillbox create NAME --dir skills` makes one; --skills PATH looks elsewhere",
            );
            return;
        }
        let widest = self
            .skills
            .iter()
            .map(|skill| display_width(&skill.name))
            .max()
            .unwrap_or(0);
        let column = 2 + widest.min(24) + 2;
        let mut source = None;
        for skill in &self.skills {
            if source != Some(&skill.source) {
                page.heading(&page.short(skill.source.as_ref()));
                source = Some(&skill.source);
            }
            page.summary(2, Span::new(Tone::Name, &skill.name), column, 2, &skill.description);
            page.paragraph(column, Tone::Dim, &self.facts(skill, page));
        }
        page.gap();
        let mut total = plural(self.skills.len(), "skill");
        if !self.shadowed.is_empty() {
            total.push_str(&format!(", {} hidden by others of the same name", self.shadowed.len()));
        }
        page.line(&[Span::plain(total)]);
    }

    fn findings(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}
