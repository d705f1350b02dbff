//! Opens an agent's session for a command.

use std::sync::Arc;

use clap::Args;
use skillbox_model::{ErrorBody, ErrorCode, SessionId};
use skillbox_repository::Source;
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, RefreshPolicy, Runtime, Settings, SourceView, ToolError,
};

use crate::context::Context;
use crate::failure::Failure;
use crate::settings::AgentSettings;
use crate::sources::skill_sources;

/// Options that select the session and the agent.
#[derive(Args, Debug)]
pub struct AgentArgs {
    /// Continue this stored session and save its changes
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Agent of the session, if it has several
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

impl AgentArgs {
    /// The agent's name.
    pub fn agent_name(&self) -> Result<AgentName, Failure> {
        let invalid = |error: skillbox_runtime::AgentNameError| invalid_field("agent", error.to_string());
        self.agent.clone().map_or_else(
            || Ok(AgentName::default()),
            |name| AgentName::parse(name).map_err(invalid),
        )
    }

    /// Opens the session.
    pub fn open_session(
        &self,
        settings: AgentSettings,
        runtime: Runtime,
        context: &Context<'_>,
    ) -> Result<AgentSession, Failure> {
        let session = self.session.clone().map(SessionId::parse).transpose();
        let options = AgentOptions {
            session: session.map_err(|error| invalid_field("session", error.to_string()))?,
            hook_runner: settings.hooks,
            // The process ends after one command, so there is no next turn at which to refresh.
            refresh: RefreshPolicy::EveryCall,
            settings: loader_settings(settings, context),
        };
        AgentSession::open(Arc::new(runtime), options)
            .map_err(|error| Failure::from_body(ToolError::from(error).body(Default::default())))
    }
}

fn invalid_field(field: &str, message: String) -> Failure {
    Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message).with_field(field))
}

/// The options for the sessions of a server's clients.
pub fn server_options(settings: AgentSettings, context: &Context<'_>) -> AgentOptions {
    AgentOptions {
        session: None,
        hook_runner: settings.hooks,
        refresh: RefreshPolicy::default(),
        settings: loader_settings(settings, context),
    }
}

fn loader_settings(settings: AgentSettings, context: &Context<'_>) -> Settings {
    Settings {
        policy: settings.policy,
        always_allowed: settings.always_allowed.0,
        max_list_chars: settings.budget,
        max_loaded: settings.max_loaded,
        at_limit: settings.at_limit,
        load_mode: settings.load_mode,
        require_loaded: settings.require_loaded,
        sources: source_views(context),
        ..Settings::new(settings.dialect)
    }
}

/// The existing sources, for prompts that list them.
fn source_views(context: &Context<'_>) -> Vec<SourceView> {
    let exists = |source: &Source| match source {
        Source::OptionalDirectory { path, .. } => path.is_dir(),
        Source::Directory { .. } | Source::Embedded(_) => true,
    };
    let sources = skill_sources(context.settings, context.layers.environment());
    sources
        .iter()
        .filter(|source| exists(source))
        .map(|source| SourceView::at(source.label()))
        .collect()
}

/// The failure of a tool call, worded in the session's dialect.
pub fn tool_failure(error: &ToolError, session: &AgentSession) -> Failure {
    Failure::from_body(error.body(session.settings().dialect))
}
