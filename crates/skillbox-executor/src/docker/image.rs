//! The image for runs: its Dockerfile, its runner, and how it is built.

use std::collections::HashMap;
use std::time::Duration;

use bollard::query_parameters::BuildImageOptionsBuilder;
use bytes::Bytes;
use futures_util::StreamExt;

use super::DockerError;
use super::daemon::Daemon;
use super::tar::{self, TarFile};
use crate::embedded_runner::RUNNER_BYTES;

/// The Dockerfile of the repository.
pub const DOCKERFILE: &str = include_str!("../../../../Dockerfile.runner");
/// The build may have to download a base image.
const BUILD_TIMEOUT: Duration = Duration::from_secs(1800);

/// The options of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The name of the image.
    pub image: String,
    /// The base image; none for the one in the Dockerfile.
    pub base: Option<String>,
}

/// Builds the image from the Dockerfile and the embedded runner. `on_output` receives the daemon's messages.
pub(super) fn build_image(
    daemon: &Daemon,
    options: &BuildOptions,
    on_output: &mut dyn FnMut(&str),
) -> Result<String, DockerError> {
    let context = tar::write(&[
        TarFile {
            name: "Dockerfile",
            mode: 0o644,
            content: DOCKERFILE.as_bytes(),
        },
        TarFile {
            name: "skillbox-runner",
            mode: 0o755,
            content: RUNNER_BYTES,
        },
    ]);
    let mut request = BuildImageOptionsBuilder::new().t(&options.image).rm(true).forcerm(true);
    if let Some(base) = &options.base {
        request = request.buildargs(&HashMap::from([("BASE".to_owned(), base.clone())]));
    }
    let request = request.build();
    let (send, receive) = std::sync::mpsc::channel();
    let docker = daemon.client();
    daemon.spawn_detached(async move {
        let work = async {
            let mut messages = docker.build_image(request, None, Some(bollard::body_full(Bytes::from(context))));
            while let Some(message) = messages.next().await {
                if send.send(message).is_err() {
                    return;
                }
            }
        };
        // Closing the channel reports the end of the build, complete or not.
        let _timed_out = tokio::time::timeout(BUILD_TIMEOUT, work).await;
    });
    let mut id = None;
    let mut last_line = String::new();
    for message in receive {
        let message = message.map_err(|error| failed(daemon, options, error))?;
        if let Some(error) = message.error_detail {
            let message = error.message.unwrap_or_default();
            if message.contains("no space left on device") {
                return Err(DockerError::DiskFull { message });
            }
            return Err(DockerError::Build { message });
        }
        if let Some(text) = message.stream.filter(|text| !text.trim().is_empty()) {
            on_output(text.trim_end());
            last_line = text;
        }
        id = message.aux.and_then(|aux| aux.id).or(id);
    }
    id.ok_or(DockerError::Build { message: last_line })
}

fn failed(daemon: &Daemon, options: &BuildOptions, error: bollard::errors::Error) -> DockerError {
    match error {
        bollard::errors::Error::DockerStreamError { error } => DockerError::Build { message: error },
        error => DockerError::from_api_error("build the image", daemon.host(), &options.image, error),
    }
}
