//! Answers the requests of one connection of a script to one host.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::answer::{StreamBody, refusal_answer, text_answer};
use crate::denial::{Denial, Target};
use crate::forward::{CurrentConnection, forward};
use crate::http_version::{HttpVersion, http1_server, http2_server};
use crate::origin_connection::OriginConnection;
use crate::request_host::Scheme;
use crate::run_state::RunState;

/// Answers the requests of one connection of a script to one host.
pub(crate) struct RequestService {
    run: Arc<RunState>,
    target: Target,
    scheme: Scheme,
    connection: CurrentConnection,
}

impl RequestService {
    pub fn new(run: &Arc<RunState>, target: &Target, scheme: Scheme, connection: OriginConnection) -> Arc<Self> {
        Arc::new(Self {
            run: Arc::clone(run),
            target: target.clone(),
            scheme,
            connection: Mutex::new(Some(connection)),
        })
    }

    /// Serves requests until either side closes the connection, or it is idle.
    pub async fn serve<S>(self: Arc<Self>, client: S, version: HttpVersion)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| Arc::clone(&self).answer(request));
        let client = TokioIo::new(client);
        let result = match version {
            HttpVersion::Http1 => {
                let connection = http1_server(&self.run)
                    .serve_connection(client, service)
                    .with_upgrades();
                self.until_idle(connection).await
            }
            HttpVersion::Http2 => {
                let connection = http2_server(&self.run).serve_connection(client, service);
                self.until_idle(connection).await
            }
        };
        // The script sees how its connection ended; only bytes that are no request are worth an entry in the report.
        if let Some(Err(error)) = result
            && error.is_parse()
        {
            self.run.record_denial(&self.target, &Denial::MalformedRequest);
        }
    }

    /// Waits for the end of a connection; none if it was idle.
    async fn until_idle<T>(&self, connection: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = connection => Some(result),
            () = self.wait_until_idle() => None,
        }
    }

    /// Returns when no byte was transferred to or from the host for the time that the limits set.
    async fn wait_until_idle(&self) {
        let limit = self.run.limits.idle;
        let mut last = Instant::now();
        loop {
            if let Some(connection) = self.connection.lock().await.as_ref() {
                last = last.max(connection.meter().last_activity());
            }
            if last.elapsed() >= limit {
                return;
            }
            tokio::time::sleep_until(last + limit).await;
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<StreamBody>, Infallible> {
        // A tunnel through the server could lead to any host.
        if request.method() == Method::CONNECT {
            let text = "CONNECT is for the proxy port";
            return Ok(text_answer(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        let answered = forward(&self.run, &self.connection, (&self.target, self.scheme), request).await;
        Ok(answered.unwrap_or_else(|refusal| {
            self.run.record_refusal(&self.target, &refusal);
            refusal_answer(&refusal, &self.target.to_string())
        }))
    }
}
