//! Opens the session of an agent and renders its system prompt section.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillbox_runtime::{AgentName, AgentSession, Dialect, HistoryCompleteness};

use super::sessions;
use crate::app::{App, run_blocking};
use crate::error::ApiError;
use crate::extract::{PathParams, Query};
use crate::tenant::Tenant;

/// Options that select the agent and the dialect.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentQuery {
    /// Dialect of tool names, parameters and texts; defaults to the server's dialect.
    pub dialect: Option<Dialect>,
    /// Agent of the session, if it has several.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"))]
    pub agent: Option<String>,
}

/// A system prompt section.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Prompt")]
pub(crate) struct PromptResponse {
    dialect: Dialect,
    /// Empty if there is nothing to disclose.
    prompt: String,
    characters: usize,
    /// The loaded skills.
    loaded: Vec<String>,
    /// State changes made by rendering: skills that were loaded for one prompt only are unloaded.
    state_delta: Value,
}

impl AgentQuery {
    /// The agent's name, or the default name.
    pub(super) fn agent_name(&self) -> Result<AgentName, ApiError> {
        match &self.agent {
            None => Ok(AgentName::default()),
            Some(name) => AgentName::parse(name.as_str())
                .map_err(|error| ApiError::invalid(error.to_string()).with_field("agent")),
        }
    }

    /// Opens an existing session for the agent.
    pub(super) fn open_session(&self, app: &App, tenant: &Tenant, session: &str) -> Result<AgentSession, ApiError> {
        let id = sessions::find_session_id(tenant, session)?;
        let mut options = app.agent_options.clone().stored_as(id);
        options.settings.dialect = self.dialect.unwrap_or(options.settings.dialect);
        Ok(AgentSession::open(tenant.runtime.clone(), options)?)
    }
}

pub(crate) async fn prompt(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<AgentQuery>,
    path: PathParams,
) -> Result<Json<PromptResponse>, ApiError> {
    run_blocking(move || {
        let agent = query.agent_name()?;
        let session = query.open_session(&app, &tenant, path.first())?;
        let dialect = session.settings().dialect;
        let failure = |error| ApiError::from_tool_error(&error, dialect);
        let state = session.state().map_err(failure)?;
        let loaded = state.loaded(&agent).map(|loaded| loaded.skill.to_string()).collect();
        let section = session
            .modify_request(&agent, HistoryCompleteness::Complete)
            .map_err(failure)?;
        let (prompt, delta) = section.map(|section| (section.text, section.delta)).unwrap_or_default();
        Ok(Json(PromptResponse {
            dialect,
            characters: prompt.chars().count(),
            prompt,
            loaded,
            state_delta: json!(delta),
        }))
    })
    .await
}
