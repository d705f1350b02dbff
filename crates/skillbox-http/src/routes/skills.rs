//! The catalog: list, search and get skills.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use skillbox_model::{Digest, ErrorCode};
use skillbox_repository::{Catalog, Resource, ResourceKind, SkillEntry, SkillReadError, search};
use skillbox_runtime::hook_diagnostics;

use crate::app::{App, RequestGone, run_blocking};
use crate::error::ApiError;
use crate::extract::{PathParams, Query};

/// Search words and limit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillsQuery {
    /// Words to search for in names, descriptions, paths and instructions.
    query: Option<String>,
    /// Maximum number of skills; default 10 for a search, else all.
    limit: Option<usize>,
}

/// A list of skills.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillList {
    skills: Vec<Skill>,
    /// Diagnostics of all sources, with code, severity, path and message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<Value>,
}

/// The summary of a skill.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Skill {
    name: String,
    /// What the skill does and when to use it.
    description: String,
    /// Path of the SKILL.md on the host.
    path: String,
    /// Source that contains the skill.
    source: String,
    /// Kind of match, from best to worst: `exact_name`, `name_prefix`, `name`, `description_or_path`, `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<String>,
    /// Matching line of the instructions, if nothing else matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
}

/// The details of a skill: its frontmatter and the content of its directory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillInfo {
    #[serde(flatten)]
    frontmatter: Map<String, Value>,
    path: String,
    source: String,
    digest: Digest,
    /// Paths by type: `script`, `reference`, `asset`, `other`.
    resources: Map<String, Value>,
    /// Paths of the documents.
    docs: Vec<String>,
    /// Diagnostics of this skill.
    diagnostics: Vec<Value>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<SkillsQuery>,
) -> Result<Json<SkillList>, ApiError> {
    run_blocking(move || {
        let catalog = app.runtime.catalog();
        Ok(Json(match query.query {
            Some(words) => search_skills(&catalog, &words, query.limit.unwrap_or(10)),
            None => all_skills(&catalog, query.limit.unwrap_or(usize::MAX)),
        }))
    })
    .await
}

fn all_skills(catalog: &Catalog, limit: usize) -> SkillList {
    SkillList {
        skills: catalog.skills().take(limit).map(summary).collect(),
        diagnostics: catalog
            .diagnostics()
            .iter()
            .map(|diagnostic| json!(diagnostic))
            .collect(),
    }
}

fn search_skills(catalog: &Catalog, words: &str, limit: usize) -> SkillList {
    let hits = search(catalog, words, limit).into_iter();
    let skills = hits.filter_map(|hit| {
        let entry = catalog.get(hit.name.as_str())?;
        Some(Skill {
            rank: json!(hit.rank).as_str().map(str::to_owned),
            excerpt: hit.excerpt.map(Into::into),
            ..summary(entry)
        })
    });
    SkillList {
        skills: skills.collect(),
        diagnostics: Vec::new(),
    }
}

fn summary(entry: &SkillEntry) -> Skill {
    Skill {
        name: entry.name().to_string(),
        description: entry.meta.description.to_string(),
        path: entry.skill_md_path().display().to_string(),
        source: entry.source_label().to_owned(),
        rank: None,
        excerpt: None,
    }
}

pub(crate) async fn info(State(app): State<Arc<App>>, path: PathParams) -> Result<Json<SkillInfo>, ApiError> {
    let request_gone = RequestGone::default();
    let is_cancelled = request_gone.check();
    run_blocking(move || {
        let name = path.first();
        let entry_directory = app.runtime.catalog().get(name).map(|entry| entry.dir().to_owned());
        if let Some(directory) = entry_directory {
            // A write without an event, such as one through a mapping, changes the metadata too.
            app.runtime.repository().refresh_skill(&directory);
        }
        let catalog = app.runtime.catalog();
        let entry = catalog.get(name).ok_or_else(|| unknown_skill(&catalog, name))?;
        read_info(&catalog, entry, &is_cancelled).map(Json).map_err(|error| {
            ApiError::new(
                ErrorCode::SkillUnreadable,
                format!("cannot read the skill {name:?}: {error}"),
            )
        })
    })
    .await
}

fn unknown_skill(catalog: &Catalog, name: &str) -> ApiError {
    if let Some(finding) = catalog.why_not_loaded(name) {
        let reason = finding.summary();
        let message = format!("unknown skill {name:?}: it exists but did not load: {reason}");
        let error = ApiError::new(ErrorCode::UnknownSkill, message);
        return match &finding.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
    }
    let error = ApiError::new(ErrorCode::UnknownSkill, format!("unknown skill {name:?}"));
    let nearest: Vec<&str> = catalog
        .nearest_names(name, 3)
        .into_iter()
        .map(|name| name.as_str())
        .collect();
    match nearest.as_slice() {
        [] => error,
        names => error.with_hint(format!("similar names: {}", names.join(", "))),
    }
}

fn read_info(
    catalog: &Catalog,
    entry: &SkillEntry,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<SkillInfo, SkillReadError> {
    let directory = entry.open()?;
    let Value::Object(frontmatter) = json!(entry.meta) else {
        unreachable!("frontmatter serialises to an object");
    };
    let diagnostics = catalog.diagnostics_of(entry).cloned().chain(directory.check()?);
    let diagnostics = diagnostics.chain(hook_diagnostics(entry));
    Ok(SkillInfo {
        frontmatter,
        path: entry.skill_md_path().display().to_string(),
        source: entry.source_label().to_owned(),
        digest: directory.digest_unless(is_cancelled)?,
        resources: paths_by_type(&directory.list_resources().resources),
        docs: directory.docs()?.iter().map(ToString::to_string).collect(),
        diagnostics: diagnostics.map(|diagnostic| json!(diagnostic)).collect(),
    })
}

fn paths_by_type(resources: &[Resource]) -> Map<String, Value> {
    let kinds = [
        ResourceKind::Script,
        ResourceKind::Reference,
        ResourceKind::Asset,
        ResourceKind::Other,
    ];
    let of_kind = |kind: ResourceKind| -> Value {
        let paths = resources.iter().filter(|resource| resource.kind == kind);
        paths.map(|resource| resource.path.to_string()).collect()
    };
    kinds
        .map(|kind| (kind.as_str().to_owned(), of_kind(kind)))
        .into_iter()
        .collect()
}
