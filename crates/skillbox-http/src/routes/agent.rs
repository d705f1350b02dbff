//! Opens the session of an agent and renders its system prompt section.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillbox_runtime::{AgentName, AgentSession, Dialect, HistoryCompleteness, PromptFrame, PromptTemplate, Settings};

use super::sessions;
use crate::app::{App, run_blocking};
use crate::error::ApiError;
use crate::extract::{PathParams, Query, read_json};
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

/// The host's own texts for a system prompt section, in place of the server's settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PromptTexts")]
pub(crate) struct PromptTexts {
    /// Template of the section; `{skills_list}` is required, `{skills_load_instructions}` and `{skills_locations}` are
    /// optional.
    prompt_template: Option<String>,
    /// How to load skills, in place of the dialect's own text.
    load_instructions: Option<String>,
}

impl PromptTexts {
    fn apply(self, settings: &mut Settings) -> Result<(), ApiError> {
        if let Some(text) = self.prompt_template {
            let template = PromptTemplate::parse(&text)
                .map_err(|error| ApiError::invalid(error.to_string()).with_field("prompt_template"))?;
            settings.prompt_frame = PromptFrame::Template(template);
        }
        if self.load_instructions.is_some() {
            settings.load_instructions = self.load_instructions;
        }
        Ok(())
    }
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
    /// The model that the loaded skills ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
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
        self.open_session_with(app, tenant, session, PromptTexts::default())
    }

    fn open_session_with(
        &self,
        app: &App,
        tenant: &Tenant,
        session: &str,
        texts: PromptTexts,
    ) -> Result<AgentSession, ApiError> {
        let id = sessions::find_session_id(tenant, session)?;
        let mut options = app.agent_options.clone().stored_as(id);
        options.settings.dialect = self.dialect.unwrap_or(options.settings.dialect);
        texts.apply(&mut options.settings)?;
        Ok(AgentSession::open(tenant.runtime.clone(), options)?)
    }
}

pub(crate) async fn prompt(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<AgentQuery>,
    path: PathParams,
) -> Result<Json<PromptResponse>, ApiError> {
    render_prompt(app, tenant, query, path, PromptTexts::default()).await
}

/// The same section with texts of the host.
pub(crate) async fn prompt_with_texts(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<AgentQuery>,
    path: PathParams,
    request: Request,
) -> Result<Json<PromptResponse>, ApiError> {
    let body = read_json(request, &tenant.body_budget, app.limits.get().max_body_bytes).await?;
    let texts = body.map(|body| body.value).unwrap_or_default();
    render_prompt(app, tenant, query, path, texts).await
}

async fn render_prompt(
    app: Arc<App>,
    tenant: Arc<Tenant>,
    query: AgentQuery,
    path: PathParams,
    texts: PromptTexts,
) -> Result<Json<PromptResponse>, ApiError> {
    run_blocking(move || {
        let agent = query.agent_name()?;
        let session = query.open_session_with(&app, &tenant, path.first(), texts)?;
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
            model: state.requested_model(&agent).map(str::to_owned),
            state_delta: json!(delta),
        }))
    })
    .await
}
