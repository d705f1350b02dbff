//! Where a session's state is kept. Every look and every change happens under one lock.

use std::sync::{Mutex, PoisonError};

use skillbox_loader::SkillsState;
use skillbox_model::SessionId;

use crate::session::{OpenSession, Remembered, SessionError};

/// The file beside the session's workspace.
const STATE: &str = "state.json";

/// Keeps one state.
#[derive(Debug)]
pub(crate) enum StateKeeper {
    /// For as long as the process has it.
    Memory(Mutex<SkillsState>),
    /// On disk, shared with other processes, and read again where they changed it.
    Stored(OpenSession, Remembered<SkillsState>),
}

/// Whether what a step changed is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Changes,
    Nothing,
}

/// What a stored session's agents have loaded.
pub(crate) fn kept_state(session: &OpenSession) -> Result<SkillsState, SessionError> {
    Ok(session.read(STATE)?.unwrap_or_default())
}

impl StateKeeper {
    /// The name that the state is kept under.
    pub(crate) fn id(&self) -> Option<&SessionId> {
        match self {
            Self::Memory(_) => None,
            Self::Stored(session, _) => Some(session.id()),
        }
    }

    /// Gives the state to a step and keeps the one that it returns. Nobody else changes it meanwhile; a step that
    /// fails leaves it as it was.
    pub(crate) fn step<R, E: From<SessionError>>(
        &self,
        step: impl FnOnce(SkillsState) -> Result<(R, Option<SkillsState>), E>,
    ) -> Result<R, E> {
        match self {
            Self::Memory(state) => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let (result, changed) = step(state.clone())?;
                if let Some(changed) = changed {
                    *state = changed;
                }
                Ok(result)
            }
            Self::Stored(session, memory) => {
                session.try_change_known(STATE, memory, |state| step(state.unwrap_or_default()))
            }
        }
    }

    /// Notes that the session was used.
    pub(crate) fn touch(&self) -> Result<(), SessionError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Stored(session, _) => session.note_use(),
        }
    }
}
