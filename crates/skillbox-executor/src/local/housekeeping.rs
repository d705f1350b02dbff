//! What a server does around its runs and not in their time: taking a used workspace down, making the next one.
//!
//! Both cost about as much as a tenth of a short run. A thread does them after the reply; it is bounded, so that a
//! server that is overrun does its own housekeeping instead of keeping used workspaces in memory.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use skillbox_model::{ByteSize, Limits};
use skillbox_sandbox::Sandbox;

use crate::workspace::Workspace;

/// How many used workspaces may wait to be taken down.
const WAITING: usize = 4;

/// What kind of workspace it is: its bytes and its inodes.
type Size = (ByteSize, u64);

/// A workspace that nobody has used.
struct Spare {
    size: Size,
    workspace: Workspace,
}

/// Makes a workspace; a failure comes up again, and is told, when a run needs one.
type Make = dyn Fn(Size) -> Option<Workspace> + Send;

/// What is left to do after a run.
struct Chore {
    /// Sandboxes to let go of: that wakes the spawner.
    _dead: Vec<Sandbox>,
    /// A workspace that was made for the run is to go, and another one of its size to come.
    used: Option<(Workspace, Size)>,
}

/// A thread with its chores.
pub(super) struct Housekeeping {
    spare: Arc<Mutex<Option<Spare>>>,
    /// What is left of sandboxes whose workspaces are still looked at. It goes with the next chore.
    dead: Mutex<Vec<Sandbox>>,
    chores: Option<SyncSender<Chore>>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    /// Starts the thread.
    pub(super) fn start(make: Box<Make>) -> std::io::Result<Self> {
        let spare: Arc<Mutex<Option<Spare>>> = Arc::default();
        let (chores, to_do) = sync_channel::<Chore>(WAITING);
        let kept = Arc::clone(&spare);
        let work = move || {
            for chore in to_do {
                if let Some((used, size)) = chore.used {
                    drop(used);
                    restock(&kept, size, &*make);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("housekeeping".to_owned())
            .spawn(work)?;
        Ok(Self {
            spare,
            dead: Mutex::default(),
            chores: Some(chores),
            thread: Some(thread),
        })
    }

    /// A workspace of this size, where one is ready. It is given away once.
    pub(super) fn take(&self, limits: &Limits) -> Option<Workspace> {
        let mut spare = lock(&self.spare);
        let fits = spare.as_ref().is_some_and(|spare| spare.size == size(limits));
        spare.take_if(|_| fits).map(|spare| spare.workspace)
    }

    /// Takes over a sandbox in which everything is dead: letting go of it wakes the spawner, which is in no hurry.
    pub(super) fn leave(&self, sandbox: Sandbox) {
        let mut dead = lock(&self.dead);
        let too_many = if dead.len() < WAITING {
            Vec::new()
        } else {
            std::mem::take(&mut *dead)
        };
        dead.push(sandbox);
        drop(dead);
        // Nobody has come for them, and the spawner waits for nothing else.
        drop(too_many);
    }

    /// Takes a used workspace over; where too many wait already, it is taken down at once.
    pub(super) fn take_down(&self, used: Workspace, limits: &Limits) {
        self.leave_to_the_thread(Some((used, size(limits))));
    }

    /// Lets go of dead sandboxes whose workspaces stay.
    pub(super) fn clear_away(&self) {
        self.leave_to_the_thread(None);
    }

    fn leave_to_the_thread(&self, used: Option<(Workspace, Size)>) {
        let chore = Chore {
            _dead: std::mem::take(&mut *lock(&self.dead)),
            used,
        };
        if let Some(chores) = &self.chores {
            // What does not fit comes back, and goes here.
            let _refused = chores.try_send(chore);
        }
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        // The end of the chores is the thread's end.
        self.chores = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

impl std::fmt::Debug for Housekeeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Housekeeping").finish_non_exhaustive()
    }
}

/// Makes the spare that is missing.
fn restock(kept: &Mutex<Option<Spare>>, size: Size, make: &Make) {
    let is_there = lock(kept).as_ref().is_some_and(|spare| spare.size == size);
    if !is_there {
        let made = make(size).map(|workspace| Spare { size, workspace });
        // The one that gives way is taken down outside of the lock.
        let _unwanted = std::mem::replace(&mut *lock(kept), made);
    }
}

fn size(limits: &Limits) -> Size {
    (limits.workspace, limits.workspace_inodes)
}

/// A holder that panicked left a spare or none; both are fine.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
