//! Serves the proxy port: CONNECT, and absolute URLs with `http://`. The same rules apply as without a proxy.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::answer::{StreamBody, empty_answer, refusal_answer};
use crate::denial::{Denial, Refusal, Target};
use crate::forward::{CurrentConnection, forward};
use crate::http_version::http1_server;
use crate::request_host::{Scheme, proxy_target};
use crate::run_state::RunState;
use crate::serve::serve_connected;
use crate::upstream::connect;

/// Serves requests until either side closes the connection.
pub(crate) async fn serve_proxy(run: Arc<RunState>, client: TcpStream) {
    // Without the option small messages only are slower.
    let _ = client.set_nodelay(true);
    let connection = CurrentConnection::default();
    let service = service_fn(|request| async { Ok::<_, Infallible>(answer(&run, request, &connection).await) });
    // The script sees how its connection ended.
    let _ = http1_server(&run)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades()
        .await;
}

async fn answer(
    run: &Arc<RunState>,
    request: Request<Incoming>,
    connection: &CurrentConnection,
) -> Response<StreamBody> {
    let target = match proxy_target(request.method(), request.uri()) {
        Ok(target) => target,
        Err(denial) => return refuse_text(run, &request, denial),
    };
    let is_connect = request.method() == Method::CONNECT;
    let answered = if is_connect {
        open_tunnel(run, request, &target).await
    } else {
        forward(run, connection, (&target, Scheme::Http), request).await
    };
    answered.unwrap_or_else(|refusal| {
        run.record_refusal(&target, &refusal);
        refusal_answer(&refusal, &target.to_string())
    })
}

/// The answer to a request whose host cannot be read.
fn refuse_text(run: &RunState, request: &Request<Incoming>, denial: Denial) -> Response<StreamBody> {
    let text = request
        .uri()
        .authority()
        .map_or_else(|| request.uri().to_string(), ToString::to_string);
    run.record.add_denial(&text, None, &denial.to_string());
    refusal_answer(&denial.into(), &text)
}

/// Connects, and then carries what the script sends through the tunnel like a connection without a proxy.
async fn open_tunnel(
    run: &Arc<RunState>,
    request: Request<Incoming>,
    target: &Target,
) -> Result<Response<StreamBody>, Refusal> {
    let upstream = connect(run, target).await?;
    let (run_state, target) = (Arc::clone(run), target.clone());
    run.spawn(async move {
        if let Ok(client) = hyper::upgrade::on(request).await {
            serve_connected(&run_state, TokioIo::new(client), upstream, &target).await;
        }
    });
    Ok(empty_answer())
}
