//! Where events are gathered until someone acts upon them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

use super::WatchOptions;

/// More changed names than this are not worth remembering one by one.
const MAX_PATHS: usize = 4_096;

/// Events, gathered and waited for.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    gathered: Mutex<Gathered>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Gathered {
    mail: Mail,
    first: Option<Instant>,
    last: Option<Instant>,
    /// The highest cookie that has come back.
    cookie: u64,
    closed: bool,
}

/// What there is to look at.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) paths: HashSet<PathBuf>,
    /// Names that went or moved, and took the watches on them along, even when something is there again.
    pub(crate) unwatched: HashSet<PathBuf>,
    /// The kernel lost events, or there are too many to name.
    pub(crate) overflowed: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in; called on the thread of the watcher.
    pub(crate) fn put(&self, event: notify::Result<Event>) {
        let mut gathered = self.lock();
        match event {
            Ok(event) if event.need_rescan() => gathered.mail.overflowed = true,
            Ok(event) if is_mere_reading(&event.kind) => return,
            Ok(event) => {
                if matches!(
                    event.kind,
                    EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
                ) {
                    gathered.mail.unwatched.extend(event.paths.iter().cloned());
                }
                gathered.mail.paths.extend(event.paths);
            }
            // The watcher lost its way; looking at everything finds it again.
            Err(error) => {
                tracing::debug!(%error, "a file event was lost");
                gathered.mail.overflowed = true;
            }
        }
        if gathered.mail.paths.len() > MAX_PATHS {
            gathered.mail = Mail {
                overflowed: true,
                ..Mail::default()
            };
        }
        let now = Instant::now();
        gathered.first.get_or_insert(now);
        gathered.last = Some(now);
        self.arrived.notify_all();
    }

    /// Notes that a cookie came back.
    pub(crate) fn put_cookie(&self, cookie: u64) {
        let mut gathered = self.lock();
        gathered.cookie = gathered.cookie.max(cookie);
        self.arrived.notify_all();
    }

    /// Waits until a cookie has come back, and tells whether it has.
    pub(crate) fn wait_for_cookie(&self, cookie: u64, at_most: Duration) -> bool {
        let missing = |gathered: &mut Gathered| gathered.cookie < cookie;
        let waited = self.arrived.wait_timeout_while(self.lock(), at_most, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.cookie >= cookie
    }

    /// Takes what has come, without waiting.
    pub(crate) fn take(&self) -> Mail {
        let mut gathered = self.lock();
        gathered.first = None;
        gathered.last = None;
        std::mem::take(&mut gathered.mail)
    }

    /// Waits until events have come and paused, or until it is time to poll, and tells whether to go on at all.
    pub(crate) fn wait(&self, options: &WatchOptions, poll: Duration) -> bool {
        let poll_at = Instant::now() + poll;
        let mut gathered = self.lock();
        loop {
            if gathered.closed {
                return false;
            }
            let now = Instant::now();
            let act_at = match (gathered.first, gathered.last) {
                (Some(first), Some(last)) => (last + options.pause).min(first + options.patience),
                _ => poll_at,
            };
            if now >= act_at {
                return true;
            }
            let waited = self.arrived.wait_timeout(gathered, act_at - now);
            gathered = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all waiting.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

/// Opening and reading make events too, ours among them.
fn is_mere_reading(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    }
}
