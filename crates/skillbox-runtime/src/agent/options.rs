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
    /// When the session picks up changed skills.
    pub refresh: RefreshPolicy,
}

impl AgentOptions {
    /// The defaults of a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Settings::new(dialect).into()
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
            refresh: RefreshPolicy::default(),
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
    /// At the start of a turn, so that prompts are stable within it.
    #[default]
    EveryTurn,
    /// At every call, for protocols without turns and for processes that make one call.
    EveryCall,
}
