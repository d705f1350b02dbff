//! The image that runs take place in: its recipe, its runner, and how it is built.

use std::collections::HashMap;
use std::time::Duration;

use bollard::query_parameters::BuildImageOptionsBuilder;
use bytes::Bytes;
use futures_util::StreamExt;

use super::DockerError;
use super::daemon::Daemon;
use super::tar::{self, TarFile};

/// Where the runner is, in every image.
pub(super) const RUNNER: &str = "/skillbox-runner";
/// The recipe, as it stands in the repository.
pub const DOCKERFILE: &str = include_str!("../../../../Dockerfile.runner");
/// The program, built with this one.
const RUNNER_BYTES: &[u8] = crate::embedded_program::BYTES;
/// A base image may have to be fetched.
const BUILD_PATIENCE: Duration = Duration::from_secs(1800);

/// How the image is built.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Its name.
    pub image: String,
    /// The image it starts from; none is the recipe's own.
    pub base: Option<String>,
}

/// Builds the image from the recipe and the runner inside this program; `tell` hears the daemon's own words.
pub(super) fn build(daemon: &Daemon, how: &BuildOptions, tell: &mut dyn FnMut(&str)) -> Result<String, DockerError> {
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
    let mut options = BuildImageOptionsBuilder::new().t(&how.image).rm(true).forcerm(true);
    if let Some(base) = &how.base {
        options = options.buildargs(&HashMap::from([("BASE".to_owned(), base.clone())]));
    }
    let options = options.build();
    let (send, receive) = std::sync::mpsc::channel();
    let docker = daemon.client();
    daemon.spawn(async move {
        let work = async {
            let mut words = docker.build_image(options, None, Some(bollard::body_full(Bytes::from(context))));
            while let Some(word) = words.next().await {
                if send.send(word).is_err() {
                    return;
                }
            }
        };
        // The end of the channel is the end of the build, finished or not.
        let _late = tokio::time::timeout(BUILD_PATIENCE, work).await;
    });
    let mut id = None;
    let mut last = String::new();
    for word in receive {
        let word = word.map_err(|error| failed(daemon, how, error))?;
        if let Some(error) = word.error_detail {
            let message = error.message.unwrap_or_default();
            if message.contains("no space left on device") {
                return Err(DockerError::Full { message });
            }
            return Err(DockerError::Build { message });
        }
        if let Some(text) = word.stream.filter(|text| !text.trim().is_empty()) {
            tell(text.trim_end());
            last = text;
        }
        id = word.aux.and_then(|aux| aux.id).or(id);
    }
    id.ok_or(DockerError::Build { message: last })
}

fn failed(daemon: &Daemon, how: &BuildOptions, error: bollard::errors::Error) -> DockerError {
    match error {
        bollard::errors::Error::DockerStreamError { error } => DockerError::Build { message: error },
        error => DockerError::of_api("build the image", daemon.host(), &how.image, error),
    }
}
