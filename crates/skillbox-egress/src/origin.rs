//! Serves plain HTTP/1 to one host. Each request must name that host: one connection can carry requests for many.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::Mutex;

use crate::client_stream::ClientStream;
use crate::denial::Target;
use crate::forward::{AnswerBody, OriginConnection, refusal_answer, server, text_answer};
use crate::metered_stream::MeteredStream;
use crate::request_host::check_host;
use crate::rewind::Rewind;
use crate::run_state::RunState;

/// Serves requests until either side closes the connection.
pub(crate) async fn serve<S: ClientStream>(
    run: &Arc<RunState>,
    client: Rewind<S>,
    upstream: MeteredStream,
    target: &Target,
) {
    let connection = match OriginConnection::start(run, upstream, target).await {
        Ok(connection) => Mutex::new(Some(connection)),
        Err(refusal) => return run.record_refusal(target, &refusal),
    };
    let service = service_fn(|request| async { Ok::<_, Infallible>(answer(run, request, &connection, target).await) });
    // The script sees how its connection ended.
    let _ = server(run)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades()
        .await;
}

async fn answer(
    run: &Arc<RunState>,
    request: Request<Incoming>,
    connection: &Mutex<Option<OriginConnection>>,
    target: &Target,
) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    // A tunnel through the server could lead to any host.
    if parts.method == Method::CONNECT {
        return text_answer(StatusCode::METHOD_NOT_ALLOWED, "CONNECT is for the proxy port");
    }
    if let Err(denial) = check_host(&parts, target) {
        run.record_denial(target, &denial);
        return refusal_answer(&denial.into(), &target.to_string());
    }
    let mut connection = connection.lock().await;
    match OriginConnection::reuse_or_connect(connection.take(), run, target).await {
        Ok(mut ready) => {
            let response = ready.forward(run, Request::from_parts(parts, body)).await;
            *connection = Some(ready);
            response
        }
        Err(refusal) => {
            run.record_refusal(target, &refusal);
            refusal_answer(&refusal, &target.to_string())
        }
    }
}
