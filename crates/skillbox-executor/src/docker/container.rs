//! One container: made, attached, started, looked at; and ended.

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

/// What the runner complains about before it can speak is kept, so much of it.
const MAX_COMPLAINT: usize = 4 << 10;

/// A container whose runner is up or coming up, with our end of its line.
#[derive(Debug)]
pub(super) struct Parked {
    pub id: String,
    pub socket: OwnedFd,
    pub inspected: ContainerInspectResponse,
    pub complaint: Complaint,
}

/// What came on the container's standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaint(Arc<Mutex<Vec<u8>>>);

impl Complaint {
    pub(super) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    fn add(&self, piece: &[u8]) {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_COMPLAINT.saturating_sub(bytes.len());
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

/// Makes a container and starts it. What fails half-way leaves nothing.
pub(super) async fn make(docker: Docker, body: ContainerCreateBody) -> Result<Parked, Error> {
    let created = docker.create_container(None::<CreateContainerOptions>, body).await?;
    let made = start(&docker, &created.id).await;
    if made.is_err() {
        remove(docker, created.id).await;
    }
    made
}

async fn start(docker: &Docker, id: &str) -> Result<Parked, Error> {
    let how = AttachContainerOptionsBuilder::new()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .build();
    // Attached before the start: nothing that the runner says is missed.
    let attached = docker.attach_container(id, Some(how)).await?;
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let complaint = Complaint::default();
    tokio::spawn(carry(attached, UnixStream::from_std(theirs)?, complaint.clone()));
    docker.start_container(id, None::<StartContainerOptions>).await?;
    let inspected = docker.inspect_container(id, None::<InspectContainerOptions>).await?;
    Ok(Parked {
        id: id.to_owned(),
        socket: ours.into(),
        inspected,
        complaint,
    })
}

/// Carries bytes both ways between the attachment and our socket, until either ends.
async fn carry(attached: AttachContainerResults, socket: UnixStream, complaint: Complaint) {
    let AttachContainerResults { mut output, mut input } = attached;
    let (mut from_us, mut to_us) = socket.into_split();
    let inwards = async move {
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
        // The container's standard input ends, and with it the runner.
        let _closed = input.shutdown().await;
    };
    let outwards = async move {
        while let Some(Ok(piece)) = output.next().await {
            match piece {
                LogOutput::StdOut { message } => {
                    if to_us.write_all(&message).await.is_err() {
                        break;
                    }
                }
                LogOutput::StdErr { message } => complaint.add(&message),
                LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
            }
        }
    };
    tokio::select! {
        () = inwards => {}
        () = outwards => {}
    }
}

/// Ends and removes a container, however often that has to be asked for. That it is gone is fine.
pub(super) async fn remove(docker: Docker, id: String) {
    for _ in 0..20 {
        let how = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match docker.remove_container(&id, Some(how)).await {
            Ok(()) => return,
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => return,
            // The daemon is removing it already: it is gone when it says so.
            Err(Error::DockerResponseServerError { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
            // Without a daemon nothing runs and nothing can be removed; the next sweep looks again.
            Err(_) => return,
        }
    }
}
