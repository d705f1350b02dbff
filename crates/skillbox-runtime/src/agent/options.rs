//! How a host wants an agent's session.

use skillbox_loader::{Dialect, Settings};
use skillbox_model::SessionId;

/// Made once by the host.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// What is shown of skills, and what they may do.
    pub settings: Settings,
    /// The name under which state and workspace are kept; without one they end with the session.
    pub session: Option<SessionId>,
    /// What happens to the commands of hooks.
    pub hooks: CommandHooks,
    /// When changes on disk are taken in.
    pub changes: ChangesEnter,
}

impl AgentOptions {
    /// The defaults of a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Settings::new(dialect).into()
    }

    /// The same, kept under a name.
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
            hooks: CommandHooks::default(),
            changes: ChangesEnter::default(),
        }
    }
}

/// What happens to a command that a skill's hook names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandHooks {
    /// It runs in the sandbox.
    #[default]
    Run,
    /// It is handed to the host like every other hook, and nothing runs.
    Offer,
}

/// When changes on disk are taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangesEnter {
    /// When a turn starts, so that prompts stay as they are within one.
    #[default]
    EveryTurn,
    /// With every call, for a process that lives no longer than that.
    EveryCall,
}
