//! `skillbox info`: the details of one skill.

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use skillbox_model::{Diagnostic, Digest, ErrorCode, RelPath};
use skillbox_repository::{
    Catalog, Resource, ResourceKind, Scope, ShadowedSkill, SkillEntry, SkillMeta, SkillReadError,
};
use skillbox_runtime::hook_diagnostics;

use super::output::CommandOutput;
use super::skill_needs::SkillNeeds;
use crate::catalog;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};

/// Show the details of a skill
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox info csv-report",
    "skillbox info csv-report --json | jq -r .digest",
))]
pub struct InfoArgs {
    /// Name of the skill
    name: String,
}

/// The details of one skill.
#[derive(Serialize)]
pub struct SkillInfo {
    #[serde(flatten)]
    meta: SkillMeta,
    path: String,
    source: String,
    scope: Scope,
    digest: Digest,
    resources: ResourceLists,
    docs: Vec<RelPath>,
    overrides: Vec<ShadowedSkill>,
    /// What the skill declares that it needs; absent if it declares nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<SkillNeeds>,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Default, Serialize)]
struct ResourceLists {
    script: Vec<RelPath>,
    reference: Vec<RelPath>,
    asset: Vec<RelPath>,
    other: Vec<RelPath>,
}

pub fn run(args: &InfoArgs, context: &Context<'_>, terminal: &Terminal) -> Result<SkillInfo, Failure> {
    let catalog = catalog::open_repository(context, terminal).catalog();
    let info = SkillInfo::read(&catalog, &args.name)?;
    let needs = SkillNeeds::of(catalog::find_skill(&catalog, &args.name)?, &info.digest, context)?;
    Ok(SkillInfo { needs, ..info })
}

impl SkillInfo {
    /// Reads the details of the skill with this name.
    pub fn read(catalog: &Catalog, name: &str) -> Result<Self, Failure> {
        let entry = catalog::find_skill(catalog, name)?;
        Self::of(catalog, entry).map_err(|error| Failure::from_error(ErrorCode::SkillUnreadable, &error))
    }

    fn of(catalog: &Catalog, entry: &SkillEntry) -> Result<Self, SkillReadError> {
        let dir = entry.open()?;
        let overrides = catalog
            .shadowed()
            .iter()
            .filter(|shadowed| shadowed.name == *entry.name());
        let listing = dir.list_resources();
        let problems = listing.problems.iter();
        let unlisted: Vec<_> = problems
            .map(|problem| catalog::unlisted_resources(entry, problem))
            .collect();
        let found = catalog.diagnostics_of(entry).cloned().chain(dir.check()?);
        Ok(Self {
            meta: entry.meta.clone(),
            path: entry.skill_md_path().display().to_string(),
            source: entry.source_label().to_owned(),
            scope: entry.scope(),
            digest: dir.digest()?,
            resources: ResourceLists::of(listing.resources),
            docs: dir.docs()?,
            overrides: overrides.cloned().collect(),
            needs: None,
            diagnostics: found.chain(hook_diagnostics(entry)).chain(unlisted).collect(),
        })
    }
}

impl ResourceLists {
    fn of(resources: Vec<Resource>) -> Self {
        let mut lists = Self::default();
        for Resource { path, kind, .. } in resources {
            match kind {
                ResourceKind::Script => &mut lists.script,
                ResourceKind::Reference => &mut lists.reference,
                ResourceKind::Asset => &mut lists.asset,
                ResourceKind::Other => &mut lists.other,
            }
            .push(path);
        }
        lists
    }
}

impl CommandOutput for SkillInfo {
    fn render(&self, page: &mut Page) {
        page.line(&[Span::new(Tone::Name, self.meta.name.as_str())]);
        page.paragraph(2, Tone::Plain, &self.meta.description);
        page.blank_line();
        field(page, "source", &page.short_path(self.source.as_ref()));
        field(page, "path", &page.short_path(self.path.as_ref()));
        field(page, "digest", &self.digest.to_string());
        for shadowed in &self.overrides {
            field(page, "shadows", &page.short_path(&shadowed.path));
        }
        self.render_fields(page);
        if let Some(needs) = &self.needs {
            needs.render(page);
        }
        let ResourceLists {
            script,
            reference,
            asset,
            other,
        } = &self.resources;
        let lists = [
            ("scripts", script),
            ("references", reference),
            ("assets", asset),
            ("other files", other),
            ("documents", &self.docs),
        ];
        for (title, paths) in lists.into_iter().filter(|(_, paths)| !paths.is_empty()) {
            page.heading(title);
            for path in paths {
                page.line(&[Span::plain("  "), Span::plain(path.to_string())]);
            }
        }
    }

    fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

impl SkillInfo {
    /// The frontmatter beyond name and description.
    fn render_fields(&self, page: &mut Page) {
        let meta = &self.meta;
        let text = |value: Option<&str>| value.map(str::to_owned);
        let fields = [
            ("license", text(meta.license.as_deref())),
            ("needs", text(meta.compatibility.as_deref())),
            (
                "tools",
                meta.allowed_tools.as_ref().map(|tools| {
                    if tools.is_empty() {
                        "none".to_owned()
                    } else {
                        tools.join(", ")
                    }
                }),
            ),
            ("argument", text(meta.argument_hint())),
            ("model", text(meta.model())),
            ("context", text(meta.context())),
            ("invoked", invocation(meta)),
            ("hooks", meta.hooks().map(Value::to_string)),
        ];
        for (label, value) in fields {
            if let Some(value) = value {
                field(page, label, &value);
            }
        }
        let extra = meta
            .extra
            .iter()
            .flat_map(|extra| extra.iter())
            .map(|(key, value)| (key.as_str(), value_text(value)));
        let metadata = meta.metadata.iter().map(|(key, value)| (&**key, value.to_string()));
        for (title, pairs) in [
            ("metadata", metadata.collect::<Vec<_>>()),
            ("other fields", extra.collect()),
        ] {
            if !pairs.is_empty() {
                page.heading(title);
            }
            for (key, value) in pairs {
                page.labelled(2, Span::plain(key), 20, Tone::Plain, &value);
            }
        }
    }
}

/// Who may invoke the skill, unless both may.
fn invocation(meta: &SkillMeta) -> Option<String> {
    match (meta.disable_model_invocation(), meta.user_invocable()) {
        (false, true) => None,
        (true, true) => Some("by users only".to_owned()),
        (false, false) => Some("by models only".to_owned()),
        (true, false) => Some("by nobody".to_owned()),
    }
}

fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn field(page: &mut Page, label: &str, value: &str) {
    page.labelled(0, Span::new(Tone::Dim, label), 9, Tone::Plain, value);
}
