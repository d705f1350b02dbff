//! The catalogue: what there is, what answers a query, everything about one skill.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use skillbox_model::{Digest, ErrorCode};
use skillbox_repository::{Catalog, Resource, ResourceKind, SkillEntry, SkillReadError, search};

use crate::app::{App, in_background};
use crate::error::ApiError;
use crate::extract::{PathText, Query};

/// Which skills.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillsQuery {
    /// Words to search names, descriptions, paths and bodies for.
    query: Option<String>,
    /// At most so many; 10 by default with a query, all without.
    limit: Option<usize>,
}

/// Skills.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillList {
    skills: Vec<Skill>,
    /// What was odd or broken, with code, severity, path and message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<Value>,
}

/// One skill in short.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Skill {
    name: String,
    /// What it does and when to use it.
    description: String,
    /// Its SKILL.md on the host.
    path: String,
    /// Where it was found.
    source: String,
    /// How it answers the query, best first: `exact_name`, `name_prefix`, `name`, `description_or_path`, `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<String>,
    /// The line of its instructions that answers, where only they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
}

/// Everything about one skill: the keys of its frontmatter, and what is in its directory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillInfo {
    #[serde(flatten)]
    frontmatter: Map<String, Value>,
    path: String,
    source: String,
    digest: Digest,
    /// Paths by type: `script`, `reference`, `asset`, `other`.
    resources: Map<String, Value>,
    /// Paths of its documents.
    docs: Vec<String>,
    /// What was odd about it.
    diagnostics: Vec<Value>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<SkillsQuery>,
) -> Result<Json<SkillList>, ApiError> {
    in_background(move || {
        let catalog = app.runtime.catalog();
        Ok(Json(match query.query {
            Some(words) => found(&catalog, &words, query.limit.unwrap_or(10)),
            None => all(&catalog, query.limit.unwrap_or(usize::MAX)),
        }))
    })
    .await
}

fn all(catalog: &Catalog, limit: usize) -> SkillList {
    SkillList {
        skills: catalog.skills().take(limit).map(short).collect(),
        diagnostics: catalog.diagnostics().iter().map(|told| json!(told)).collect(),
    }
}

fn found(catalog: &Catalog, words: &str, limit: usize) -> SkillList {
    let hits = search(catalog, words, limit).into_iter();
    let skills = hits.filter_map(|hit| {
        let entry = catalog.get(hit.name.as_str())?;
        Some(Skill {
            rank: json!(hit.rank).as_str().map(str::to_owned),
            excerpt: hit.excerpt.map(Into::into),
            ..short(entry)
        })
    });
    SkillList {
        skills: skills.collect(),
        diagnostics: Vec::new(),
    }
}

fn short(entry: &SkillEntry) -> Skill {
    Skill {
        name: entry.name().to_string(),
        description: entry.meta.description.to_string(),
        path: entry.path().display().to_string(),
        source: entry.source_label().to_owned(),
        rank: None,
        excerpt: None,
    }
}

pub(crate) async fn info(State(app): State<Arc<App>>, path: PathText) -> Result<Json<SkillInfo>, ApiError> {
    in_background(move || {
        let (catalog, name) = (app.runtime.catalog(), path.first());
        let entry = catalog.get(name).ok_or_else(|| unknown(&catalog, name))?;
        let whole = whole(&catalog, entry);
        whole
            .map(Json)
            .map_err(|error| ApiError::new(ErrorCode::SkillUnreadable, format!("{name} cannot be read: {error}")))
    })
    .await
}

fn unknown(catalog: &Catalog, name: &str) -> ApiError {
    let error = ApiError::new(ErrorCode::UnknownSkill, format!("unknown skill {name:?}"));
    let nearest: Vec<&str> = catalog.nearest(name, 3).into_iter().map(|name| name.as_str()).collect();
    match nearest.as_slice() {
        [] => error,
        names => error.hint(format!("the nearest are {}", names.join(", "))),
    }
}

fn whole(catalog: &Catalog, entry: &SkillEntry) -> Result<SkillInfo, SkillReadError> {
    let directory = entry.open()?;
    let Value::Object(frontmatter) = json!(entry.meta) else {
        unreachable!("a frontmatter is an object");
    };
    let told = catalog.diagnostics_of(entry).cloned().chain(directory.advice()?);
    Ok(SkillInfo {
        frontmatter,
        path: entry.path().display().to_string(),
        source: entry.source_label().to_owned(),
        digest: directory.digest()?,
        resources: by_type(&directory.resources()?),
        docs: directory.docs()?.iter().map(ToString::to_string).collect(),
        diagnostics: told.map(|told| json!(told)).collect(),
    })
}

fn by_type(resources: &[Resource]) -> Map<String, Value> {
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
