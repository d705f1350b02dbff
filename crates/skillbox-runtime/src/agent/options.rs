//! The options of an agent's session.

use skillbox_loader::{Dialect, Settings};
use skillbox_model::SessionId;

/// The options of an agent's session, set once by the host.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// How agents see skills, and which tools loaded skills allow.
    pub settings: Settings,
    /// The id under which state and workspace are stored. Without one, the state is kept in memory, and each run has a
    /// workspace of its own.
    pub session: Option<SessionId>,
    /// Who runs the hooks that are commands.
    pub hook_runner: HookRunner,
    /// When the session picks up changed skills; by default, the dialect decides.
    pub refresh: Option<RefreshPolicy>,
    /// Maximum bytes of file content in the result of one tool call. References lead to the rest.
    pub inline_for_models: usize,
}

impl AgentOptions {
    /// The default of [`inline_for_models`](Self::inline_for_models).
    pub const INLINE_FOR_MODELS: usize = 16 << 10;

    /// The defaults of a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Settings::new(dialect).into()
    }

    /// When the session picks up changed skills.
    pub fn refresh(&self) -> RefreshPolicy {
        self.refresh.unwrap_or(match self.settings.dialect {
            // Spring AI Alibaba reloads its skills before each model call.
            Dialect::Saa => RefreshPolicy::EveryCall,
            Dialect::Skillbox | Dialect::Trpc | Dialect::Deepagents | Dialect::Agentskills => RefreshPolicy::EveryTurn,
        })
    }

    /// The same options, with state and workspace stored under an id.
    pub fn stored_as(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }
}

impl From<Settings> for AgentOptions {
    fn from(settings: Settings) -> Self {
        Self {
            settings,
            session: None,
            hook_runner: HookRunner::default(),
            refresh: None,
            inline_for_models: Self::INLINE_FOR_MODELS,
        }
    }
}

/// Who runs the hooks that are commands. The host runs all other hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookRunner {
    /// skillbox runs them in the sandbox.
    #[default]
    Skillbox,
    /// The host receives them like all other hooks.
    Host,
}

/// When a session picks up skills that changed on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefreshPolicy {
    /// At the start of a turn, so that prompts are stable within it. The first use of a session starts its first turn.
    #[default]
    EveryTurn,
    /// At every call: changes that were complete before the call are visible to it.
    EveryCall,
}
