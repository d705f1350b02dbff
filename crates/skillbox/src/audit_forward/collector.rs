//! A collector that accepts a POST of JSON lines.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url, redirect};
use skillbox_model::ErrorCode;
use tokio::runtime::{Builder, Runtime};

use super::delivery::{DeliveryError, TIMEOUT};
use crate::failure::Failure;

/// The media type of JSON lines.
const JSON_LINES: &str = "application/x-ndjson";
const MAX_TOKEN_BYTES: u64 = 16 << 10;
/// The bytes of an error's body that are shown.
const MAX_BODY_BYTES: usize = 300;

/// A collector. A batch is delivered when it answers with a status of success.
pub struct Collector {
    client: Client,
    runtime: Runtime,
    url: Url,
    token_file: Option<PathBuf>,
}

impl Collector {
    pub fn new(url: &Url, token_file: Option<&Path>) -> Result<Self, Failure> {
        // The call fails if a crypto provider is already installed. Any provider is fine.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("skillbox/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .no_proxy()
            // A redirect could lead records and token to another host.
            .redirect(redirect::Policy::none())
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT * 2)
            .build()
            .map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
        Ok(Self {
            client,
            runtime,
            url: url.clone(),
            token_file: token_file.map(Path::to_owned),
        })
    }

    /// Posts records, each on a line.
    pub fn post(&self, records: &[String]) -> Result<(), DeliveryError> {
        let target = || self.url.to_string();
        let mut body = records.join("\n");
        body.push('\n');
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, JSON_LINES)
            .body(body);
        if let Some(file) = &self.token_file {
            request = request.header(AUTHORIZATION, read_token(file).map_err(DeliveryError::Token)?);
        }
        let answered = self.runtime.block_on(async {
            let mut response = request.send().await?;
            let mut body = Vec::new();
            if !response.status().is_success() {
                while body.len() < MAX_BODY_BYTES
                    && let Some(chunk) = response.chunk().await?
                {
                    body.extend_from_slice(&chunk);
                }
                body.truncate(MAX_BODY_BYTES);
            }
            Ok((response.status(), body))
        });
        match answered {
            Ok((status, _)) if status.is_success() => Ok(()),
            Ok((status, body)) => Err(DeliveryError::Refused {
                target: target(),
                status: status.as_u16(),
                body: String::from_utf8_lossy(&body).trim().to_owned(),
            }),
            Err(source) => Err(DeliveryError::Request {
                target: target(),
                source: reqwest::Error::without_url(source),
            }),
        }
    }
}

/// The header with the token. The file is read for every batch, so that a token can be replaced.
fn read_token(path: &Path) -> Result<HeaderValue, String> {
    let cannot_read = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(cannot_read)?;
    file.take(MAX_TOKEN_BYTES)
        .read_to_string(&mut text)
        .map_err(cannot_read)?;
    let mut header = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
        .map_err(|_| format!("{} does not contain a token on one line", path.display()))?;
    header.set_sensitive(true);
    Ok(header)
}
