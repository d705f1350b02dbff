//! Opens an agent's session for a command.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use skillbox_model::{ErrorBody, ErrorCode, SessionId};
use skillbox_repository::Source;
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, PromptFrame, PromptTemplate, Runtime, Settings, SourceView, ToolError,
};

use crate::context::Context;
use crate::failure::Failure;
use crate::settings::AgentSettings;
use crate::sources::skill_sources;

/// The maximum size of a template or of load instructions, far above what a model can use.
const MAX_PROMPT_TEXT_BYTES: u64 = 256 << 10;

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
            refresh: None,
            inline_for_models: settings.inline_for_models,
            settings: loader_settings(settings, context)?,
        };
        AgentSession::open(Arc::new(runtime), options)
            .map_err(|error| Failure::from_body(ToolError::from(error).body(Default::default())))
    }
}

fn invalid_field(field: &str, message: String) -> Failure {
    Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message).with_field(field))
}

/// The options for the sessions of a server's clients.
pub fn server_options(settings: AgentSettings, context: &Context<'_>) -> Result<AgentOptions, Failure> {
    Ok(AgentOptions {
        session: None,
        hook_runner: settings.hooks,
        refresh: None,
        inline_for_models: settings.inline_for_models,
        settings: loader_settings(settings, context)?,
    })
}

fn loader_settings(settings: AgentSettings, context: &Context<'_>) -> Result<Settings, Failure> {
    let prompt_frame = match &settings.prompt_template {
        None => PromptFrame::Dialect,
        Some(path) => {
            let template = PromptTemplate::parse(&read_prompt_text("prompt_template", path)?)
                .map_err(|error| invalid_field("prompt_template", format!("{}: {error}", path.display())))?;
            PromptFrame::Template(template)
        }
    };
    let load_instructions = settings
        .load_instructions
        .as_ref()
        .map(|path| read_prompt_text("load_instructions", path))
        .transpose()?;
    Ok(Settings {
        prompt_frame,
        load_instructions,
        policy: settings.policy,
        always_allowed: settings.always_allowed.0,
        max_list_chars: settings.budget,
        max_loaded: settings.max_loaded,
        at_limit: settings.at_limit,
        load_mode: settings.load_mode,
        require_loaded: settings.require_loaded,
        subagent_inherit: settings.subagent_inherit,
        sources: source_views(context),
        ..Settings::new(settings.dialect)
    })
}

/// Reads a text that becomes part of every prompt.
fn read_prompt_text(setting: &str, path: &Path) -> Result<String, Failure> {
    let cannot_read =
        |reason: String| invalid_field(setting, format!("{setting}: cannot read {}: {reason}", path.display()));
    let file = File::open(path).map_err(|error| cannot_read(error.to_string()))?;
    let mut text = String::new();
    file.take(MAX_PROMPT_TEXT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| cannot_read(error.to_string()))?;
    if text.len() as u64 > MAX_PROMPT_TEXT_BYTES {
        return Err(cannot_read(format!("it is larger than {MAX_PROMPT_TEXT_BYTES} bytes")));
    }
    Ok(text)
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
        .map(|source| SourceView::from_path(source.label()))
        .collect()
}

/// The failure of a tool call, worded in the session's dialect.
pub fn tool_failure(error: &ToolError, session: &AgentSession) -> Failure {
    Failure::from_body(error.body(session.settings().dialect))
}
