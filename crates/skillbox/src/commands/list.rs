//! `skillbox list`: all skills, with diagnostics.

use std::collections::HashMap;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use skillbox_model::{Diagnostic, Digest};
use skillbox_repository::{Catalog, ResourceListing, Scope, ShadowedSkill, SkillEntry, SkillReadError};
use skillbox_runtime::hook_diagnostics;

use super::output::CommandOutput;
use crate::catalog::{self, ResourceCounts};
use crate::context::Context;
use crate::render::diagnostics::DiagnosticsStyle;
use crate::render::{Page, Progress, Span, Terminal, Tone, display_width, plural};

/// List all skills
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox list                             the default directories",
    "skillbox list --skills ./skills           one directory only",
    "skillbox list --json | jq '.skills[].name'",
))]
pub struct ListArgs {
    /// Include the digest of each skill (reads every file)
    #[arg(long)]
    digest: bool,
}

/// All skills of a catalog.
#[derive(Serialize)]
pub struct SkillList {
    skills: Vec<Skill>,
    shadowed: Vec<ShadowedSkill>,
    diagnostics: Vec<Diagnostic>,
    /// The number of skills that would load with the setting `metadata_fallback`.
    loadable_with_metadata_fallback: usize,
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

pub fn run(args: &ListArgs, context: &Context<'_>, terminal: &Terminal) -> SkillList {
    let catalog = catalog::open_repository(context, terminal).catalog();
    Progress::show_during(terminal.is_stderr_terminal(), "counting resources", |progress| {
        SkillList::of(&catalog, args.digest, progress)
    })
}

impl SkillList {
    /// Describes a whole catalog.
    pub fn of(catalog: &Catalog, with_digest: bool, progress: &Progress) -> Self {
        progress.set_total(catalog.len());
        let described = catalog::map_skills(catalog, |entry| {
            progress.advance();
            describe(entry, with_digest)
        });
        let (skills, found): (Vec<_>, Vec<_>) = described.into_iter().unzip();
        let diagnostics = catalog.diagnostics().iter().cloned().chain(found.into_iter().flatten());
        Self {
            skills,
            shadowed: catalog.shadowed().to_vec(),
            diagnostics: diagnostics.collect(),
            loadable_with_metadata_fallback: catalog.loadable_with_fallback(),
        }
    }

    /// Says how many more skills a setting would load.
    fn render_fallback_note(&self, page: &mut Page) {
        let more = self.loadable_with_metadata_fallback;
        if more > 0 {
            let skills = plural(more, "more skill");
            let note = format!("{skills} would load with --metadata-fallback: the name or the description is missing");
            page.paragraph(0, Tone::Dim, &note);
        }
    }

    /// The shadowed skills by name.
    fn shadowed_by_name(&self) -> HashMap<&str, Vec<&ShadowedSkill>> {
        let mut by_name = HashMap::<_, Vec<_>>::new();
        for shadowed in &self.shadowed {
            by_name.entry(shadowed.name.as_str()).or_default().push(shadowed);
        }
        by_name
    }
}

fn describe(entry: &SkillEntry, with_digest: bool) -> (Skill, Vec<Diagnostic>) {
    let mut diagnostics = hook_diagnostics(entry);
    let (resources, digest) = match read_resources(entry, with_digest) {
        Ok((listing, digest)) => {
            let problems = listing.problems.iter();
            diagnostics.extend(problems.map(|problem| catalog::unlisted_resources(entry, problem)));
            (ResourceCounts::of(&listing.resources), digest)
        }
        Err(error) => {
            diagnostics.push(catalog::unreadable_skill(entry, &error));
            (ResourceCounts::default(), None)
        }
    };
    let skill = Skill {
        name: entry.name().to_string(),
        description: entry.meta.description.to_string(),
        path: entry.skill_md_path().display().to_string(),
        source: entry.source_label().to_owned(),
        scope: entry.scope(),
        digest,
        resources,
    };
    (skill, diagnostics)
}

fn read_resources(entry: &SkillEntry, with_digest: bool) -> Result<(ResourceListing, Option<Digest>), SkillReadError> {
    let dir = entry.open()?;
    let digest = if with_digest { Some(dir.digest()?) } else { None };
    Ok((dir.list_resources(), digest))
}

impl Skill {
    /// Resources, shadowed skills and digest in one line.
    fn facts(&self, shadowed: &[&ShadowedSkill], page: &Page) -> String {
        let resources = Some(self.resources.to_string()).filter(|text| !text.is_empty());
        let shadows = shadowed.iter().map(|shadowed| {
            let is_from_other_source = shadowed.source != shadowed.by_source;
            let shadowed_path = if is_from_other_source {
                Path::new(&*shadowed.source)
            } else {
                shadowed.path.as_path()
            };
            format!("shadows the one in {}", page.short_path(shadowed_path))
        });
        let digest = self.digest.as_ref().map(Digest::to_string);
        resources
            .into_iter()
            .chain(shadows)
            .chain(digest)
            .collect::<Vec<_>>()
            .join(" · ")
    }
}

impl CommandOutput for SkillList {
    fn render(&self, page: &mut Page) {
        if self.skills.is_empty() {
            page.line(&[Span::plain("no skills found")]);
            self.render_fallback_note(page);
            page.paragraph(
                0,
                Tone::Dim,
                "create one with `skillbox create NAME --dir skills`, or search elsewhere with --skills PATH",
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
        let shadowed = self.shadowed_by_name();
        let mut source = None;
        for skill in &self.skills {
            if source != Some(&skill.source) {
                page.heading(&page.short_path(skill.source.as_ref()));
                source = Some(&skill.source);
            }
            page.labelled_summary(2, Span::new(Tone::Name, &skill.name), column, 2, &skill.description);
            let facts = skill.facts(shadowed.get(skill.name.as_str()).map_or(&[], Vec::as_slice), page);
            page.paragraph(column, Tone::Dim, &facts);
        }
        page.blank_line();
        let mut total = plural(self.skills.len(), "skill");
        if !self.shadowed.is_empty() {
            total.push_str(&format!(
                ", {} shadowed by others of the same name",
                self.shadowed.len()
            ));
        }
        page.line(&[Span::plain(total)]);
        self.render_fallback_note(page);
    }

    fn diagnostics_style(&self) -> DiagnosticsStyle {
        DiagnosticsStyle::SummaryOnTerminal
    }

    fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}
