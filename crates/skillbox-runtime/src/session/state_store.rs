//! Stores what the agents of a session have loaded, in memory or on disk.

use std::sync::{Mutex, PoisonError};

use skillbox_loader::{SkillsState, StoredTurnTexts};
use skillbox_model::SessionId;

use super::file_cache::FileCache;
use super::{OpenSession, SessionError};

/// The file beside the session's workspace.
const STATE_FILE: &str = "state.json";

/// The file with the texts of skills that the current turn has read.
const TURN_TEXTS_FILE: &str = "turn_texts.json";

/// The store of one state. Every read and every change holds one lock.
#[derive(Debug)]
pub(crate) enum StateStore {
    /// In memory, lost when the value is dropped.
    Memory(Mutex<SkillsState>),
    /// On disk, shared with other processes.
    Disk(OpenSession, FileCache<SkillsState>),
}

/// Whether the changes of a step are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persist {
    Changes,
    Nothing,
}

/// The state of a stored session.
pub(crate) fn read_skills_state(session: &OpenSession) -> Result<SkillsState, SessionError> {
    Ok(session.read_file(STATE_FILE)?.unwrap_or_default())
}

impl StateStore {
    /// A state that is not stored.
    pub(crate) fn in_memory(state: SkillsState) -> Self {
        Self::Memory(Mutex::new(state))
    }

    /// The state of a stored session.
    pub(crate) fn on_disk(session: OpenSession) -> Self {
        Self::Disk(session, FileCache::default())
    }

    /// The id of a stored session.
    pub(crate) fn id(&self) -> Option<&SessionId> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(session, _) => Some(session.id()),
        }
    }

    /// Passes the state to `step` and stores the state that it returns, under one lock. A step that fails changes
    /// nothing.
    pub(crate) fn update<R, E: From<SessionError>>(
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
            Self::Disk(session, cache) => {
                session.try_update_cached_file(STATE_FILE, cache, |state| step(state.unwrap_or_default()))
            }
        }
    }

    /// The texts that the current turn has read, as another process stored them.
    pub(crate) fn read_turn_texts(&self) -> Result<StoredTurnTexts, SessionError> {
        match self {
            Self::Memory(_) => Ok(StoredTurnTexts::default()),
            Self::Disk(session, _) => Ok(session.read_file(TURN_TEXTS_FILE)?.unwrap_or_default()),
        }
    }

    /// Stores the texts that the current turn has read. The caller is inside [`update`](Self::update).
    pub(crate) fn write_turn_texts(&self, texts: &StoredTurnTexts) -> Result<(), SessionError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Disk(session, _) if texts.is_empty() => session.remove_file(TURN_TEXTS_FILE),
            Self::Disk(session, _) => session.replace_file(TURN_TEXTS_FILE, texts).map(drop),
        }
    }

    /// Records that the session was used.
    pub(crate) fn record_use(&self) -> Result<(), SessionError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Disk(session, _) => session.record_use(),
        }
    }
}
