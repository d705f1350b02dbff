//! A bounded pool of idle containers for the next runs. They are created in the background, and each is used once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::models::ContainerCreateBody;

use super::container::{self, StartedContainer};
use super::daemon::Daemon;
use super::runner_connection::RunnerConnection;

/// Creating a container keeps two CPU cores busy, so the pool waits until no run has taken a container for this long.
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
    fn add_idle(&mut self, body: &Arc<ContainerCreateBody>, container: StartedContainer) -> Option<StartedContainer> {
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

    /// Takes an idle container that was created by this request, if there is one. If the request differs from the last
    /// one, all idle containers are replaced.
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
        self.fill_in_background(daemon);
        found
    }

    /// Accepts a container after its run. Removing it keeps two CPU cores busy as well, so the pool waits for a quiet
    /// period.
    pub(super) fn return_used(&self, daemon: &Daemon, container: StartedContainer) {
        let mut state = lock(&self.state);
        state.used.push_back(container);
        let excess = state.used.len().saturating_sub(state.size);
        let surplus = state.used.drain(..excess).collect();
        drop(state);
        remove_in_background(daemon, surplus);
        self.fill_in_background(daemon);
    }

    /// Starts to fill the pool with containers created by this request.
    pub(super) fn fill_with(&self, daemon: &Daemon, body: Arc<ContainerCreateBody>) {
        lock(&self.state).body = Some(body);
        self.fill_in_background(daemon);
    }

    /// The number of idle containers.
    pub(super) fn idle_count(&self) -> usize {
        lock(&self.state).idle.len()
    }

    /// Removes all containers and stops filling.
    pub(super) fn shut_down(&self, daemon: &Daemon) {
        let mut state = lock(&self.state);
        state.size = 0;
        let mut all = std::mem::take(&mut state.idle);
        all.append(&mut state.used);
        remove_in_background(daemon, all);
    }

    fn fill_in_background(&self, daemon: &Daemon) {
        {
            let mut state = lock(&self.state);
            if state.is_filling || state.size == 0 {
                return;
            }
            state.is_filling = true;
        }
        let (docker, state) = (daemon.client(), self.state.clone());
        // A background task is not interrupted: if the executor is dropped in the meantime, the container is still
        // created, and then removed.
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
                        let unwanted = lock(&state).add_idle(&body, container);
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

/// Whether two requests are equal. Comparing the pointers is usually enough.
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

fn remove_in_background(daemon: &Daemon, containers: VecDeque<StartedContainer>) {
    for container in containers {
        daemon.spawn_background_task(container::remove_container(daemon.client(), container.id));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
