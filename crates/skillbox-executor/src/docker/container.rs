//! One container: create, attach, start, inspect, remove.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::Docker;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, InspectContainerOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The maximum number of bytes that are kept of the runner's standard error.
const STDERR_CAPACITY_BYTES: usize = 4 << 10;

/// A started container, with our end of the connection to its runner.
#[derive(Debug)]
pub(super) struct StartedContainer {
    pub id: String,
    pub socket: OwnedFd,
    pub inspected: ContainerInspectResponse,
    pub runner_stderr: RunnerStderr,
}

/// The beginning of the runner's standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct RunnerStderr(Arc<Mutex<Vec<u8>>>);

impl RunnerStderr {
    pub(super) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    fn add(&self, piece: &[u8]) {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let remaining = STDERR_CAPACITY_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(&piece[..piece.len().min(remaining)]);
    }
}

/// Creates and starts a container. If a step fails, nothing remains.
pub(super) async fn create_and_start(docker: Docker, body: ContainerCreateBody) -> Result<StartedContainer, Error> {
    let created = docker.create_container(None::<CreateContainerOptions>, body).await?;
    let started = start(&docker, &created.id).await;
    if started.is_err() {
        remove_container(docker, created.id).await;
    }
    started
}

async fn start(docker: &Docker, id: &str) -> Result<StartedContainer, Error> {
    let options = AttachContainerOptionsBuilder::new()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .build();
    // Attaching before the start ensures that no output of the runner is missed.
    let attached = docker.attach_container(id, Some(options)).await?;
    let (our_end, daemon_end) = StdUnixStream::pair()?;
    our_end.set_nonblocking(true)?;
    daemon_end.set_nonblocking(true)?;
    let runner_stderr = RunnerStderr::default();
    tokio::spawn(forward_bytes(
        attached,
        UnixStream::from_std(daemon_end)?,
        runner_stderr.clone(),
    ));
    docker.start_container(id, None::<StartContainerOptions>).await?;
    let inspected = docker.inspect_container(id, None::<InspectContainerOptions>).await?;
    Ok(StartedContainer {
        id: id.to_owned(),
        socket: our_end.into(),
        inspected,
        runner_stderr,
    })
}

/// Forwards bytes in both directions between the attachment and our socket, until one of them closes.
async fn forward_bytes(attached: AttachContainerResults, socket: UnixStream, runner_stderr: RunnerStderr) {
    let AttachContainerResults { mut output, mut input } = attached;
    let (mut from_us, mut to_us) = socket.into_split();
    let to_container = async move {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match from_us.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    let sent = input.write_all(&buffer[..count]).await;
                    if sent.is_err() || input.flush().await.is_err() {
                        break;
                    }
                }
            }
        }
        // Closing the container's standard input ends the runner.
        let _closed = input.shutdown().await;
    };
    let from_container = async move {
        while let Some(Ok(piece)) = output.next().await {
            match piece {
                LogOutput::StdOut { message } => {
                    if to_us.write_all(&message).await.is_err() {
                        break;
                    }
                }
                LogOutput::StdErr { message } => runner_stderr.add(&message),
                LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
            }
        }
    };
    tokio::select! {
        () = to_container => {}
        () = from_container => {}
    }
}

/// Kills and removes a container, with retries. It is no error if the container does not exist. A container that could
/// not be removed is removed by a later search for abandoned containers.
pub(super) async fn remove_container(docker: Docker, id: String) {
    if let Err(error) = try_remove_container(&docker, &id).await {
        tracing::warn!(%error, container = id, "cannot remove a container");
    }
}

/// Kills a container, and returns when it is removed, or at least has no process left.
pub(super) async fn kill_container(docker: Docker, id: String) -> Result<(), Error> {
    let Err(error) = try_remove_container(&docker, &id).await else {
        return Ok(());
    };
    match docker.inspect_container(&id, None::<InspectContainerOptions>).await {
        Ok(inspected)
            if inspected
                .state
                .as_ref()
                .is_some_and(|state| state.running == Some(false)) =>
        {
            Ok(())
        }
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
        Ok(_) | Err(_) => Err(error),
    }
}

/// The daemon kills the processes of the container and waits for their end before it removes the container.
async fn try_remove_container(docker: &Docker, id: &str) -> Result<(), Error> {
    let mut attempts_left = 20;
    loop {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match docker.remove_container(id, Some(options)).await {
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(()),
            // The daemon is already removing the container. A 404 confirms the removal.
            Err(Error::DockerResponseServerError { .. }) if attempts_left > 1 => {
                attempts_left -= 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error),
        }
    }
}
