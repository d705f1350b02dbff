//! An agent's session as the commands need it.

use std::sync::Arc;

use clap::Args;
use skillbox_model::{ErrorBody, ErrorCode, SessionId};
use skillbox_repository::Source;
use skillbox_runtime::{AgentName, AgentOptions, AgentSession, ChangesEnter, Runtime, Settings, SourceView, ToolError};

use super::Context;
use crate::failure::Failure;
use crate::settings::AgentSettings;
use crate::sources::sources;

/// Which session, and which agent of it.
#[derive(Args, Debug)]
pub struct AgentArgs {
    /// Go on with what this session has loaded, and keep what changes
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The agent of the session, where it has several
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

impl AgentArgs {
    /// The agent's name.
    pub fn agent(&self) -> Result<AgentName, Failure> {
        let wrong = |error: skillbox_runtime::AgentNameError| wrong(error.to_string(), "agent");
        self.agent.clone().map_or_else(
            || Ok(AgentName::default()),
            |name| AgentName::parse(name).map_err(wrong),
        )
    }

    /// Opens the session.
    pub fn open(
        &self,
        settings: AgentSettings,
        runtime: Runtime,
        context: &Context<'_>,
    ) -> Result<AgentSession, Failure> {
        let session = self.session.clone().map(SessionId::parse).transpose();
        let options = AgentOptions {
            session: session.map_err(|error| wrong(error.to_string(), "session"))?,
            hooks: settings.hooks,
            // This process ends with its command, so there is no turn that could go on.
            changes: ChangesEnter::EveryCall,
            settings: disclosure(settings, context),
        };
        AgentSession::open(Arc::new(runtime), options)
            .map_err(|error| Failure::from_body(ToolError::from(error).body(Default::default())))
    }
}

fn wrong(message: String, field: &str) -> Failure {
    Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message).in_field(field))
}

/// How the sessions of a server's clients are made.
pub fn server_options(settings: AgentSettings, context: &Context<'_>) -> AgentOptions {
    AgentOptions {
        session: None,
        hooks: settings.hooks,
        changes: ChangesEnter::default(),
        settings: disclosure(settings, context),
    }
}

fn disclosure(settings: AgentSettings, context: &Context<'_>) -> Settings {
    Settings {
        policy: settings.policy,
        always_allowed: settings.always_allowed.0,
        description_budget: settings.budget,
        max_loaded: settings.max_loaded,
        at_limit: settings.at_limit,
        load_mode: settings.load_mode,
        require_loaded: settings.require_loaded,
        sources: source_views(context),
        ..Settings::new(settings.dialect)
    }
}

/// The places that prompts name: those that are there.
fn source_views(context: &Context<'_>) -> Vec<SourceView> {
    let is_there = |source: &Source| match source {
        Source::OptionalDirectory { path, .. } => path.is_dir(),
        Source::Directory { .. } | Source::Embedded(_) => true,
    };
    let sources = sources(context.settings, context.layers.environment());
    sources
        .iter()
        .filter(|source| is_there(source))
        .map(|source| SourceView::at(source.label()))
        .collect()
}

/// A call that was refused.
pub fn refused(error: &ToolError, session: &AgentSession) -> Failure {
    Failure::from_body(error.body(session.settings().dialect))
}
