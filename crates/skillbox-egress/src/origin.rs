//! Serves plain HTTP/1 to one host. Each request must name that host: one connection can carry requests for many.

use std::sync::Arc;

use crate::client_stream::ClientStream;
use crate::denial::Target;
use crate::http_version::HttpVersion;
use crate::metered_stream::MeteredStream;
use crate::origin_connection::OriginConnection;
use crate::request_host::Scheme;
use crate::request_service::RequestService;
use crate::rewind::Rewind;
use crate::run_state::RunState;

/// Serves requests until either side closes the connection.
pub(crate) async fn serve<S: ClientStream>(
    run: &Arc<RunState>,
    client: Rewind<S>,
    upstream: MeteredStream,
    target: &Target,
) {
    match OriginConnection::start_plain(run, upstream, target).await {
        Ok(connection) => {
            RequestService::new(run, target, Scheme::Http, connection)
                .serve(client, HttpVersion::Http1)
                .await;
        }
        Err(refusal) => run.record_refusal(target, &refusal),
    }
}
