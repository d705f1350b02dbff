//! Artifacts: list, download, upload and delete.

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
use crate::app::{App, run_blocking};
use crate::content::{self, FileResponse, send_file};
use crate::error::ApiError;
use crate::extract::{PathParams, Query};
use crate::tenant::Tenant;

/// Options that select the scope of artifacts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeQuery {
    /// Session of the artifacts; by default, artifacts that belong to no session.
    session: Option<String>,
}

/// Filters for the list of artifacts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Session of the artifacts; by default, artifacts that belong to no session.
    session: Option<String>,
    /// Name of an artifact; lists all its versions, oldest first.
    name: Option<String>,
}

/// One version of an artifact.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Artifact")]
pub(crate) struct ArtifactView {
    name: String,
    /// Version number, from 0; never reused.
    version: u64,
    size_bytes: u64,
    sha256: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// The run that created the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    created_unix_ms: u64,
    /// Reference for the `inputs` of a run.
    #[serde(rename = "ref")]
    reference: String,
}

/// A list of artifacts.
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
    /// The scope; the session must exist.
    fn scope(&self, tenant: &Tenant) -> Result<Scope, ApiError> {
        match &self.session {
            None => Ok(Scope::User),
            Some(id) => Ok(Scope::Session(sessions::find_session_id(tenant, id)?)),
        }
    }
}

pub(crate) async fn list(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<ArtifactList>, ApiError> {
    run_blocking(move || {
        let scope = ScopeQuery { session: query.session }.scope(&tenant)?;
        let store = tenant.runtime.artifacts();
        let Some(name) = query.name else {
            return Ok(ArtifactList::of(store.list(&scope)?));
        };
        let name = parse_reference(&name)?.name;
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
    path: PathParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = run_blocking(move || {
        let scope = query.scope(&tenant)?;
        let store = tenant.runtime.artifacts().clone();
        let artifact = store.resolve(&scope, &parse_reference(path.first())?)?;
        Ok(FileResponse {
            size: artifact.size_bytes,
            mime_type: artifact.mime_type.clone(),
            etag: Some(artifact.sha256.to_string()),
            open: Box::new(move |part| match part {
                None => Ok(Box::new(store.open(&artifact)?)),
                Some(range) => Ok(Box::new(store.open_range(&artifact, range)?)),
            }),
        })
    });
    send_file(file.await?, &headers).await
}

pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ScopeQuery>,
    path: PathParams,
    request: Request,
) -> Result<(StatusCode, Json<ArtifactView>), ApiError> {
    let reference = parse_reference(path.first())?;
    if reference.version.is_some() {
        let error = ApiError::invalid("the store assigns the version; remove it from the name");
        return Err(error.with_field("name"));
    }
    let scope = {
        let tenant = tenant.clone();
        run_blocking(move || query.scope(&tenant)).await?
    };
    let mime_type = mime_type(request.headers(), &reference.name);
    let stored = content::store_upload(&app, &tenant, scope, reference.name, mime_type, request.into_body()).await?;
    Ok((StatusCode::CREATED, Json(stored.into())))
}

pub(crate) async fn remove(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ScopeQuery>,
    path: PathParams,
) -> Result<Json<ArtifactList>, ApiError> {
    run_blocking(move || {
        let scope = query.scope(&tenant)?;
        let removed = tenant
            .runtime
            .artifacts()
            .remove(&scope, &parse_reference(path.first())?)?;
        Ok(ArtifactList::of(removed))
    })
    .await
}

fn parse_reference(text: &str) -> Result<ArtifactRef, ApiError> {
    ArtifactRef::parse(text).map_err(|error| ApiError::invalid(error.to_string()).with_field("name"))
}

/// The content type that the client sent if it is specific and well-formed, else the type of the file extension.
fn mime_type(headers: &HeaderMap, name: &ArtifactName) -> Option<String> {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let declared = declared
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let is_token = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let is_well_formed = declared
        .split_once('/')
        .is_some_and(|(main, sub)| is_token(main) && is_token(sub));
    // Clients send these types when they do not know the type.
    let is_unspecific = matches!(
        declared,
        "application/octet-stream" | "application/x-www-form-urlencoded"
    );
    if is_well_formed && !is_unspecific && declared.len() <= 100 {
        return Some(declared.to_ascii_lowercase());
    }
    mime_guess::from_path(name.base_name()).first_raw().map(str::to_owned)
}
