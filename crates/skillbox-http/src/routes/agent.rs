//! An agent of a session: how it is opened, and what its system prompt gets.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillbox_runtime::{AgentName, AgentSession, Dialect, History};

use super::sessions;
use crate::app::{App, in_background};
use crate::error::ApiError;
use crate::extract::{PathText, Query};
use crate::tenant::Tenant;

/// Which agent, and in which dialect.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentQuery {
    /// Names, parameters and texts; the server's own by default.
    pub dialect: Option<Dialect>,
    /// The agent of the session, where it has several.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"))]
    pub agent: Option<String>,
}

/// The section of a system prompt.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Prompt")]
pub(crate) struct PromptAnswer {
    dialect: Dialect,
    /// Empty where there is nothing to say.
    prompt: String,
    characters: usize,
    /// The skills that are loaded.
    loaded: Vec<String>,
    /// What showing it changed: skills that were loaded for one prompt are gone.
    state_delta: Value,
}

impl AgentQuery {
    /// The agent's name.
    pub(super) fn agent(&self) -> Result<AgentName, ApiError> {
        match &self.agent {
            None => Ok(AgentName::default()),
            Some(name) => {
                AgentName::parse(name.as_str()).map_err(|error| ApiError::invalid(error.to_string()).in_field("agent"))
            }
        }
    }

    /// The session as an agent's host has it. It must be there.
    pub(super) fn open(&self, app: &App, tenant: &Tenant, session: &str) -> Result<AgentSession, ApiError> {
        let id = sessions::known(tenant, session)?;
        let mut options = app.options.clone().stored_as(id);
        options.settings.dialect = self.dialect.unwrap_or(options.settings.dialect);
        Ok(AgentSession::open(tenant.runtime.clone(), options)?)
    }
}

pub(crate) async fn prompt(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<AgentQuery>,
    path: PathText,
) -> Result<Json<PromptAnswer>, ApiError> {
    in_background(move || {
        let agent = query.agent()?;
        let session = query.open(&app, &tenant, path.first())?;
        let dialect = session.settings().dialect;
        let refused = |error| ApiError::of_tool(&error, dialect);
        let state = session.state().map_err(refused)?;
        let loaded = state.loaded(&agent).map(|loaded| loaded.skill.to_string()).collect();
        let section = session.modify_request(&agent, History::Whole).map_err(refused)?;
        let (prompt, delta) = section.map(|section| (section.text, section.delta)).unwrap_or_default();
        Ok(Json(PromptAnswer {
            dialect,
            characters: prompt.chars().count(),
            prompt,
            loaded,
            state_delta: json!(delta),
        }))
    })
    .await
}
