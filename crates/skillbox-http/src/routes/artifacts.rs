//! Artifacts: listed, fetched whole or in part, stored, removed.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_artifacts::{Artifact, ArtifactName, ArtifactRef, Scope, StoreError};
use skillbox_model::{Digest, RunId};

use super::sessions;
use crate::app::{App, in_background};
use crate::content::{self, FileAnswer, answer};
use crate::error::ApiError;
use crate::extract::{PathText, Query};
use crate::tenant::Tenant;

/// Whose artifacts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeQuery {
    /// The session that they belong to; without one, those that belong to none.
    session: Option<String>,
}

/// Which artifacts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// The session that they belong to; without one, those that belong to none.
    session: Option<String>,
    /// Every version of this name, oldest first.
    name: Option<String>,
}

/// One version of an artifact.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Artifact")]
pub(crate) struct ArtifactView {
    name: String,
    /// From 0 upwards, never used twice.
    version: u64,
    size_bytes: u64,
    sha256: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// The run that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    created_unix_ms: u64,
    /// What the `inputs` of a run may name.
    #[serde(rename = "ref")]
    reference: String,
}

/// Artifacts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ArtifactList {
    artifacts: Vec<ArtifactView>,
}

impl From<Artifact> for ArtifactView {
    fn from(artifact: Artifact) -> Self {
        Self {
            reference: artifact.reference(),
            name: artifact.name.to_string(),
            version: artifact.version,
            size_bytes: artifact.size_bytes,
            sha256: artifact.sha256,
            mime_type: artifact.mime_type,
            run_id: artifact.run_id,
            created_unix_ms: artifact.created_unix_ms,
        }
    }
}

impl ArtifactList {
    fn of(artifacts: Vec<Artifact>) -> Json<Self> {
        Json(Self {
            artifacts: artifacts.into_iter().map(Into::into).collect(),
        })
    }
}

impl ScopeQuery {
    /// The scope; a session must be there.
    fn scope(&self, tenant: &Tenant) -> Result<Scope, ApiError> {
        match &self.session {
            None => Ok(Scope::User),
            Some(id) => Ok(Scope::Session(sessions::known(tenant, id)?)),
        }
    }
}

pub(crate) async fn list(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<ArtifactList>, ApiError> {
    in_background(move || {
        let scope = ScopeQuery { session: query.session }.scope(&tenant)?;
        let store = tenant.runtime.artifacts();
        let Some(name) = query.name else {
            return Ok(ArtifactList::of(store.list(&scope)?));
        };
        let name = parse(&name)?.name;
        let versions = store.versions(&scope, &name)?;
        if versions.is_empty() {
            return Err(StoreError::Missing(ArtifactRef { name, version: None }).into());
        }
        Ok(ArtifactList::of(versions))
    })
    .await
}

pub(crate) async fn get(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ScopeQuery>,
    path: PathText,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = in_background(move || {
        let scope = query.scope(&tenant)?;
        let store = tenant.runtime.artifacts().clone();
        let artifact = store.resolve(&scope, &parse(path.first())?)?;
        Ok(FileAnswer {
            size: artifact.size_bytes,
            mime_type: artifact.mime_type.clone(),
            tag: Some(artifact.sha256.to_string()),
            open: Box::new(move |part| match part {
                None => Ok(Box::new(store.open(&artifact)?)),
                Some(range) => Ok(Box::new(store.open_range(&artifact, range)?)),
            }),
        })
    });
    answer(file.await?, &headers).await
}

pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ScopeQuery>,
    path: PathText,
    request: Request,
) -> Result<(StatusCode, Json<ArtifactView>), ApiError> {
    let reference = parse(path.first())?;
    if reference.version.is_some() {
        let error = ApiError::invalid("a version is given by the store, not by the name");
        return Err(error.in_field("name"));
    }
    let scope = {
        let tenant = tenant.clone();
        in_background(move || query.scope(&tenant)).await?
    };
    let mime_type = mime_type(request.headers(), &reference.name);
    let stored = content::store(&app, &tenant, scope, reference.name, mime_type, request.into_body()).await?;
    Ok((StatusCode::CREATED, Json(stored.into())))
}

pub(crate) async fn remove(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ScopeQuery>,
    path: PathText,
) -> Result<Json<ArtifactList>, ApiError> {
    in_background(move || {
        let scope = query.scope(&tenant)?;
        let removed = tenant.runtime.artifacts().remove(&scope, &parse(path.first())?)?;
        Ok(ArtifactList::of(removed))
    })
    .await
}

fn parse(text: &str) -> Result<ArtifactRef, ApiError> {
    ArtifactRef::parse(text).map_err(|error| ApiError::invalid(error.to_string()).in_field("name"))
}

/// What the client says it is, where that says something and has the form of a type.
fn mime_type(headers: &HeaderMap, name: &ArtifactName) -> Option<String> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let is_type = said
        .split_once('/')
        .is_some_and(|(kind, sub)| is_word(kind) && is_word(sub));
    // What clients send when they do not know says less than the name.
    let says_nothing = matches!(said, "application/octet-stream" | "application/x-www-form-urlencoded");
    if is_type && !says_nothing && said.len() <= 100 {
        return Some(said.to_ascii_lowercase());
    }
    mime_guess::from_path(name.base_name()).first_raw().map(str::to_owned)
}
