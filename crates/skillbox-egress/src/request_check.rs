//! Checks whether the rules allow a request: its host, its method and its path.

use hyper::http::request::Parts;
use skillbox_model::RequestPath;

use crate::allow_list::AllowedRequests;
use crate::denial::{Denial, Target};
use crate::request_host::{Scheme, check_host};
use crate::run_state::RunState;

/// Headers by which servers take another method or path than the request line says.
const OVERRIDING_HEADERS: [&str; 5] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
];

/// Checks whether the rules allow a request.
pub(crate) fn check_request(
    run: &RunState,
    (target, scheme): (&Target, Scheme),
    request: &Parts,
) -> Result<(), Denial> {
    check_host(request, target, scheme)?;
    match run.allowed.requests(&target.host, target.port) {
        AllowedRequests::All => Ok(()),
        AllowedRequests::Some(rules) if rules.is_empty() => Err(Denial::NotAllowed(target.clone())),
        AllowedRequests::Some(rules) => {
            if let Some(name) = OVERRIDING_HEADERS
                .iter()
                .find(|name| request.headers.contains_key(**name))
            {
                return Err(Denial::OverridingHeader(name));
            }
            let path = RequestPath::parse(request.uri.path());
            if rules
                .iter()
                .any(|rule| rule.allows(request.method.as_str(), path.as_ref()))
            {
                return Ok(());
            }
            let allowed: Vec<String> = rules.iter().map(ToString::to_string).collect();
            Err(Denial::RequestNotAllowed {
                request: format!("{} {}", request.method, request.uri.path()),
                allowed: allowed.join("; "),
            })
        }
    }
}
