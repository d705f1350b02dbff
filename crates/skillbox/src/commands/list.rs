//! `skillbox list`: every skill that is found, and what was odd on the way.

use std::collections::HashMap;
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
        let described = catalogue::for_each(catalog, |entry| {
            progress.step();
            describe(entry, with_digest)
        });
        let (skills, unreadable): (Vec<_>, Vec<_>) = described.into_iter().unzip();
        let diagnostics = catalog
            .diagnostics()
            .iter()
            .cloned()
            .chain(unreadable.into_iter().flatten());
        Self {
            skills,
            shadowed: catalog.shadowed().to_vec(),
            diagnostics: diagnostics.collect(),
        }
    }

    /// What each name hides.
    fn hidden(&self) -> HashMap<&str, Vec<&Shadowed>> {
        let mut hidden = HashMap::<_, Vec<_>>::new();
        for shadowed in &self.shadowed {
            hidden.entry(shadowed.name.as_str()).or_default().push(shadowed);
        }
        hidden
    }
}

fn describe(entry: &SkillEntry, with_digest: bool) -> (Skill, Option<Diagnostic>) {
    let (resources, digest, finding) = match look_into(entry, with_digest) {
        Ok((resources, digest)) => (resources, digest, None),
        Err(error) => (
            ResourceCounts::default(),
            None,
            Some(catalogue::unreadable(entry, &error)),
        ),
    };
    let skill = Skill {
        name: entry.name().to_string(),
        description: entry.meta.description.to_string(),
        path: entry.path().display().to_string(),
        source: entry.source_label().to_owned(),
        scope: entry.scope(),
        digest,
        resources,
    };
    (skill, finding)
}

fn look_into(entry: &SkillEntry, with_digest: bool) -> Result<(ResourceCounts, Option<Digest>), SkillReadError> {
    let dir = entry.open()?;
    let digest = if with_digest { Some(dir.digest()?) } else { None };
    Ok((ResourceCounts::of(&dir.resources()?), digest))
}

impl Skill {
    /// Resources, what the skill hides, digest.
    fn facts(&self, hidden: &[&Shadowed], page: &Page) -> String {
        let resources = Some(self.resources.to_string()).filter(|text| !text.is_empty());
        let hides = hidden.iter().map(|shadowed| {
            let from_elsewhere = shadowed.source != shadowed.by_source;
            let what = if from_elsewhere {
                Path::new(&*shadowed.source)
            } else {
                shadowed.path.as_path()
            };
            format!("hides the one of {}", page.short(what))
        });
        let digest = self.digest.as_ref().map(Digest::to_string);
        resources
            .into_iter()
            .chain(hides)
            .chain(digest)
            .collect::<Vec<_>>()
            .join(" · ")
    }
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
        let hidden = self.hidden();
        let mut source = None;
        for skill in &self.skills {
            if source != Some(&skill.source) {
                page.heading(&page.short(skill.source.as_ref()));
                source = Some(&skill.source);
            }
            page.summary(2, Span::new(Tone::Name, &skill.name), column, 2, &skill.description);
            let facts = skill.facts(hidden.get(skill.name.as_str()).map_or(&[], Vec::as_slice), page);
            page.paragraph(column, Tone::Dim, &facts);
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
