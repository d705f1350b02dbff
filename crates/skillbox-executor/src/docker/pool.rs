//! Containers that wait for a run: each used once, made in the background, bounded in number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::models::ContainerCreateBody;

use super::container::{self, Parked};
use super::daemon::Daemon;
use super::line::Line;

/// Making a container is work for both cores: a burst of runs comes first.
const CALM: Duration = Duration::from_millis(150);

/// The pool of one daemon.
#[derive(Debug, Default)]
pub(super) struct Pool {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What the waiting containers were made from.
    body: Option<Arc<ContainerCreateBody>>,
    waiting: VecDeque<Parked>,
    /// Containers that had their run: nothing lives in them but the runner, and they wait to be removed.
    used: VecDeque<Parked>,
    size: usize,
    is_filling: bool,
    /// Counts takings, so that filling waits until they have ended.
    taken: u64,
}

impl State {
    /// Keeps a container, or gives it back when nobody wants it any more.
    fn park(&mut self, body: &Arc<ContainerCreateBody>, parked: Parked) -> Option<Parked> {
        if !is_same(self.body.as_ref(), body) || self.waiting.len() >= self.size {
            return Some(parked);
        }
        self.waiting.push_back(parked);
        None
    }
}

impl Pool {
    /// A pool of so many.
    pub(super) fn new(size: usize) -> Self {
        let state = State {
            size,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// A container made from this, where one waits. The pool holds containers of the last kind that was asked for.
    pub(super) fn take(&self, daemon: &Daemon, body: &Arc<ContainerCreateBody>) -> Option<(Parked, Line)> {
        let mut state = lock(&self.state);
        if state.size == 0 {
            return None;
        }
        state.taken += 1;
        if !is_same(state.body.as_ref(), body) {
            state.body = Some(body.clone());
            let unfit = std::mem::take(&mut state.waiting);
            retire(daemon, unfit);
        }
        let mut found = None;
        while let Some(parked) = state.waiting.pop_front() {
            let Ok(socket) = parked.socket.try_clone() else {
                continue;
            };
            let mut line = Line::new(socket);
            if line.is_alive() {
                found = Some((parked, line));
                break;
            }
            // Its container is gone, with the daemon that had it perhaps.
            retire(daemon, VecDeque::from([parked]));
        }
        drop(state);
        self.fill(daemon);
        found
    }

    /// Takes a container back whose run is over. Removing it is work for both cores too: that waits for calm.
    pub(super) fn give_back(&self, daemon: &Daemon, parked: Parked) {
        let mut state = lock(&self.state);
        state.used.push_back(parked);
        let too_many = state.used.len().saturating_sub(state.size);
        let now = state.used.drain(..too_many).collect();
        drop(state);
        retire(daemon, now);
        self.fill(daemon);
    }

    /// Begins to fill the pool with containers made from this.
    pub(super) fn warm(&self, daemon: &Daemon, body: Arc<ContainerCreateBody>) {
        lock(&self.state).body = Some(body);
        self.fill(daemon);
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    /// Gives up everything that waits.
    pub(super) fn empty(&self, daemon: &Daemon) {
        let mut state = lock(&self.state);
        state.size = 0;
        let mut all = std::mem::take(&mut state.waiting);
        all.append(&mut state.used);
        retire(daemon, all);
    }

    fn fill(&self, daemon: &Daemon) {
        {
            let mut state = lock(&self.state);
            if state.is_filling || state.size == 0 {
                return;
            }
            state.is_filling = true;
        }
        let (docker, state) = (daemon.client(), self.state.clone());
        // A container that is half made when this executor ends is finished first, and removed.
        daemon.chore(async move {
            loop {
                wait_for_calm(&state).await;
                let used = std::mem::take(&mut lock(&state).used);
                for parked in used {
                    container::remove(docker.clone(), parked.id).await;
                }
                let next = {
                    let mut state = lock(&state);
                    let body = state.body.clone().filter(|_| state.waiting.len() < state.size);
                    if body.is_none() && !state.used.is_empty() {
                        continue;
                    }
                    state.is_filling = body.is_some();
                    body
                };
                let Some(body) = next else { return };
                match container::make(docker.clone(), ContainerCreateBody::clone(&body)).await {
                    Ok(parked) => {
                        let unwanted = lock(&state).park(&body, parked);
                        if let Some(unwanted) = unwanted {
                            container::remove(docker.clone(), unwanted.id).await;
                        }
                    }
                    Err(error) => {
                        // The next run makes its own container, and tells what is wrong.
                        tracing::warn!(%error, "the pool of containers cannot be filled");
                        lock(&state).is_filling = false;
                        return;
                    }
                }
            }
        });
    }
}

/// Whether two requests are one; the long way only where they were written down apart.
fn is_same(known: Option<&Arc<ContainerCreateBody>>, body: &Arc<ContainerCreateBody>) -> bool {
    known.is_some_and(|known| Arc::ptr_eq(known, body) || known == body)
}

async fn wait_for_calm(state: &Arc<Mutex<State>>) {
    loop {
        let (before, is_empty) = {
            let state = lock(state);
            (state.taken, state.waiting.is_empty())
        };
        if is_empty && before == 0 {
            return;
        }
        tokio::time::sleep(CALM).await;
        if lock(state).taken == before {
            return;
        }
    }
}

fn retire(daemon: &Daemon, parked: VecDeque<Parked>) {
    for parked in parked {
        daemon.chore(container::remove(daemon.client(), parked.id));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
