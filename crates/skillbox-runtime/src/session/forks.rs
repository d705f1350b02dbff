//! Forks: sessions in which a skill with `context: fork` is loaded, and the session that they return a result to.
//!
//! The parent lists its forks in one file, and each fork names its origin in another. Both change under the lock of the
//! file, so that several processes can fork and return at the same time.

use serde::{Deserialize, Serialize};
use skillbox_loader::AgentName;
use skillbox_model::{SessionId, SkillName};

use super::{OpenSession, SessionError};

/// The file in which a session lists its forks.
const FORKS_FILE: &str = "forks.json";
/// The file in which a fork names its origin.
const ORIGIN_FILE: &str = "fork.json";
/// How many forks of a session may be without a result.
pub(crate) const MAX_OPEN_FORKS: usize = 16;
/// How many forks a session lists; the oldest one with a result is forgotten, and removed when it is idle.
const MAX_LISTED_FORKS: usize = 64;

/// A fork of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The session of the fork.
    pub session: SessionId,
    /// The skill that is loaded in it.
    pub skill: SkillName,
    /// The agent that should run the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that the skill asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it has returned its result.
    #[serde(default)]
    pub returned: bool,
}

/// The origin of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForkOrigin {
    /// The session that loaded the skill.
    pub parent: SessionId,
    /// The agent that loaded it.
    pub parent_agent: AgentName,
    /// The fork, as the parent lists it.
    pub fork: Fork,
}

/// The forks of a session, oldest first.
pub(crate) fn list_forks(session: &OpenSession) -> Result<Vec<Fork>, SessionError> {
    Ok(session.read_file(FORKS_FILE)?.unwrap_or_default())
}

/// Adds a fork to the list of its parent. Returns whether the limit allows it.
pub(crate) fn add_fork(parent: &OpenSession, fork: Fork) -> Result<bool, SessionError> {
    parent.update_file(FORKS_FILE, |forks: &mut Option<Vec<Fork>>| {
        let forks = forks.get_or_insert_default();
        if forks.iter().filter(|fork| !fork.returned).count() >= MAX_OPEN_FORKS {
            return false;
        }
        if forks.len() >= MAX_LISTED_FORKS
            && let Some(oldest) = forks.iter().position(|fork| fork.returned)
        {
            forks.remove(oldest);
        }
        forks.push(fork);
        true
    })
}

/// Removes a fork from the list of its parent.
pub(crate) fn remove_fork(parent: &OpenSession, fork: &SessionId) -> Result<(), SessionError> {
    parent.update_file(FORKS_FILE, |forks: &mut Option<Vec<Fork>>| {
        forks.get_or_insert_default().retain(|known| known.session != *fork);
    })
}

/// Marks a fork in the list of its parent as returned.
pub(crate) fn mark_returned(parent: &OpenSession, fork: &SessionId) -> Result<(), SessionError> {
    parent.update_file(FORKS_FILE, |forks: &mut Option<Vec<Fork>>| {
        for known in forks
            .get_or_insert_default()
            .iter_mut()
            .filter(|known| known.session == *fork)
        {
            known.returned = true;
        }
    })
}

/// The origin of a session, if it is a fork.
pub(crate) fn read_fork_origin(session: &OpenSession) -> Result<Option<ForkOrigin>, SessionError> {
    session.read_file(ORIGIN_FILE)
}

/// Records the origin of a fork.
pub(crate) fn write_fork_origin(session: &OpenSession, origin: ForkOrigin) -> Result<(), SessionError> {
    session.update_file(ORIGIN_FILE, |stored| *stored = Some(origin))
}

/// Changes the origin of a fork under its lock. `change` may fail; the file then stays as it is.
pub(crate) fn try_change_fork_origin<R, E: From<SessionError>>(
    session: &OpenSession,
    change: impl FnOnce(Option<ForkOrigin>) -> Result<(R, Option<ForkOrigin>), E>,
) -> Result<R, E> {
    session.try_update_file(ORIGIN_FILE, change)
}

#[cfg(test)]
mod tests {
    use super::super::SessionStore;
    use super::*;

    #[test]
    fn open_forks_are_limited_and_returned_ones_make_place() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let parent = store.open_or_create(&SessionId::parse("p").unwrap()).unwrap();
        let fork = |number: usize| Fork {
            session: SessionId::parse(format!("fork-{number}")).unwrap(),
            skill: SkillName::parse("s").unwrap(),
            agent: None,
            model: None,
            returned: false,
        };
        for number in 0..MAX_OPEN_FORKS {
            assert!(add_fork(&parent, fork(number)).unwrap());
        }
        assert!(!add_fork(&parent, fork(99)).unwrap());
        mark_returned(&parent, &fork(3).session).unwrap();
        assert!(add_fork(&parent, fork(99)).unwrap());
        remove_fork(&parent, &fork(99).session).unwrap();
        assert_eq!(list_forks(&parent).unwrap().len(), MAX_OPEN_FORKS);
        for number in 100..200 {
            assert!(add_fork(&parent, fork(number)).unwrap());
            mark_returned(&parent, &fork(number).session).unwrap();
        }
        let listed = list_forks(&parent).unwrap();
        assert_eq!(listed.len(), MAX_LISTED_FORKS);
        assert_eq!(listed.iter().filter(|fork| !fork.returned).count(), MAX_OPEN_FORKS - 1);
    }
}
