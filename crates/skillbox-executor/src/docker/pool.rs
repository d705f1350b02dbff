//! Idle containers for the next runs: each is used once, created in the background, and their number is bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::models::ContainerCreateBody;

use super::container::{self, StartedContainer};
use super::daemon::Daemon;
use super::runner_connection::RunnerConnection;

/// Creating a container loads both cores, so the pool waits until no run has taken a container for this long.
const QUIET_PERIOD: Duration = Duration::from_millis(150);

/// The pool of one daemon.
#[derive(Debug, Default)]
pub(super) struct Pool {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The request that the idle containers were created with.
    body: Option<Arc<ContainerCreateBody>>,
    idle: VecDeque<StartedContainer>,
    /// Containers after their run. Only the runner is left in them, and they wait for removal.
    used: VecDeque<StartedContainer>,
    size: usize,
    is_filling: bool,
    /// Counts the calls of `take`, so that filling can wait for a quiet period.
    take_count: u64,
}

impl State {
    /// Adds a container, or returns it if it is no longer needed.
    fn park(&mut self, body: &Arc<ContainerCreateBody>, container: StartedContainer) -> Option<StartedContainer> {
        if !is_same_body(self.body.as_ref(), body) || self.idle.len() >= self.size {
            return Some(container);
        }
        self.idle.push_back(container);
        None
    }
}

impl Pool {
    /// Creates an empty pool for `size` containers.
    pub(super) fn new(size: usize) -> Self {
        let state = State {
            size,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Takes an idle container with this request, if there is one. The pool holds containers of the last requested
    /// kind.
    pub(super) fn take(
        &self,
        daemon: &Daemon,
        body: &Arc<ContainerCreateBody>,
    ) -> Option<(StartedContainer, RunnerConnection)> {
        let mut state = lock(&self.state);
        if state.size == 0 {
            return None;
        }
        state.take_count += 1;
        if !is_same_body(state.body.as_ref(), body) {
            state.body = Some(body.clone());
            let outdated = std::mem::take(&mut state.idle);
            remove_in_background(daemon, outdated);
        }
        let mut found = None;
        while let Some(container) = state.idle.pop_front() {
            let Ok(socket) = container.socket.try_clone() else {
                continue;
            };
            let mut connection = RunnerConnection::new(socket);
            if connection.is_alive() {
                found = Some((container, connection));
                break;
            }
            // The container has ended, perhaps together with its daemon.
            remove_in_background(daemon, VecDeque::from([container]));
        }
        drop(state);
        self.fill(daemon);
        found
    }

    /// Accepts a container after its run. Its removal loads both cores as well, so it waits for a quiet period.
    pub(super) fn return_used(&self, daemon: &Daemon, container: StartedContainer) {
        let mut state = lock(&self.state);
        state.used.push_back(container);
        let excess = state.used.len().saturating_sub(state.size);
        let surplus = state.used.drain(..excess).collect();
        drop(state);
        remove_in_background(daemon, surplus);
        self.fill(daemon);
    }

    /// Starts to fill the pool with containers of this kind.
    pub(super) fn start_filling(&self, daemon: &Daemon, body: Arc<ContainerCreateBody>) {
        lock(&self.state).body = Some(body);
        self.fill(daemon);
    }

    /// The number of idle containers.
    pub(super) fn idle_count(&self) -> usize {
        lock(&self.state).idle.len()
    }

    /// Removes all containers and stops filling.
    pub(super) fn drain_all(&self, daemon: &Daemon) {
        let mut state = lock(&self.state);
        state.size = 0;
        let mut all = std::mem::take(&mut state.idle);
        all.append(&mut state.used);
        remove_in_background(daemon, all);
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
        // As a background task: if the executor is dropped in the meantime, the container is completed and then removed.
        daemon.spawn_background_task(async move {
            loop {
                wait_for_quiet_period(&state).await;
                let used = std::mem::take(&mut lock(&state).used);
                for container in used {
                    container::remove_container(docker.clone(), container.id).await;
                }
                let next = {
                    let mut state = lock(&state);
                    let body = state.body.clone().filter(|_| state.idle.len() < state.size);
                    if body.is_none() && !state.used.is_empty() {
                        continue;
                    }
                    state.is_filling = body.is_some();
                    body
                };
                let Some(body) = next else { return };
                match container::create_and_start(docker.clone(), ContainerCreateBody::clone(&body)).await {
                    Ok(container) => {
                        let unwanted = lock(&state).park(&body, container);
                        if let Some(unwanted) = unwanted {
                            container::remove_container(docker.clone(), unwanted.id).await;
                        }
                    }
                    Err(error) => {
                        // The next run creates its own container, and reports the error.
                        tracing::warn!(%error, "cannot fill the container pool");
                        lock(&state).is_filling = false;
                        return;
                    }
                }
            }
        });
    }
}

/// Whether two requests are equal. Comparing the pointers first is usually enough.
fn is_same_body(current: Option<&Arc<ContainerCreateBody>>, body: &Arc<ContainerCreateBody>) -> bool {
    current.is_some_and(|current| Arc::ptr_eq(current, body) || current == body)
}

async fn wait_for_quiet_period(state: &Arc<Mutex<State>>) {
    loop {
        let (before, is_empty) = {
            let state = lock(state);
            (state.take_count, state.idle.is_empty())
        };
        if is_empty && before == 0 {
            return;
        }
        tokio::time::sleep(QUIET_PERIOD).await;
        if lock(state).take_count == before {
            return;
        }
    }
}

fn remove_in_background(daemon: &Daemon, container: VecDeque<StartedContainer>) {
    for container in container {
        daemon.spawn_background_task(container::remove_container(daemon.client(), container.id));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
