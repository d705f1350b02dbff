//! The `Idempotency-Key` of requests that start a run: a client that repeats a request gets the run of the first one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use skillbox_model::{ErrorCode, RunId};

use super::record::RunRecord;
use super::registry::{KnownRun, RunRegistry};
use crate::error::ApiError;
use crate::lock::lock;

/// Maximum number of keys of a tenant. A key ends with the result of its run.
const MAX_KEYS: usize = 10_000;
const MAX_KEY_BYTES: usize = 255;
const HEADER: &str = "Idempotency-Key";

/// The digest of a request: a key belongs to one request.
pub(crate) type RequestDigest = [u8; 32];

/// The keys of one tenant.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<HashMap<String, (RequestDigest, RunId)>>);

impl IdempotencyKeys {
    /// The run of a key; the first request with the key starts it.
    pub(crate) fn find_or_start(
        &self,
        key: &str,
        request: RequestDigest,
        runs: &RunRegistry,
        start: impl FnOnce() -> Result<Arc<RunRecord>, ApiError>,
    ) -> Result<Arc<RunRecord>, ApiError> {
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            let message = format!("the key has {} bytes; 1 to {MAX_KEY_BYTES} are allowed", key.len());
            return Err(ApiError::invalid(message).with_field(HEADER));
        }
        let mut keys = lock(&self.0);
        if let Some((first_request, run)) = keys.get(key) {
            match runs.find(run.as_str()) {
                KnownRun::Found(_) if *first_request != request => {
                    let message = format!("the key was used for another request, which started the run {run}");
                    let error = ApiError::invalid(message).with_field(HEADER);
                    return Err(error.with_status(axum::http::StatusCode::UNPROCESSABLE_ENTITY));
                }
                KnownRun::Found(record) => return Ok(record),
                KnownRun::Gone => {
                    let message = format!("the run {run} of this key was deleted, or its result has expired");
                    return Err(ApiError::new(ErrorCode::RunGone, message));
                }
                KnownRun::Unknown => {}
            }
        }
        if keys.len() >= MAX_KEYS {
            keys.retain(|_, (_, run)| !matches!(runs.find(run.as_str()), KnownRun::Unknown));
            if keys.len() >= MAX_KEYS {
                return Err(ApiError::busy(format!("{MAX_KEYS} idempotency keys are in use")));
            }
        }
        let record = start()?;
        keys.insert(key.to_owned(), (request, record.id.clone()));
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_starts_one_run_and_belongs_to_one_request() {
        let (keys, runs) = (IdempotencyKeys::default(), RunRegistry::new(Duration::from_secs(60)));
        let start = |id: &str| {
            let record = RunRecord::new(RunId::parse(id).unwrap(), "s".into(), None).unwrap();
            runs.add(record.clone());
            Ok(record)
        };
        let first = keys.find_or_start("k", [1; 32], &runs, || start("r1")).unwrap();
        let again = keys.find_or_start("k", [1; 32], &runs, || start("r2")).unwrap();
        assert_eq!((first.id.as_str(), again.id.as_str()), ("r1", "r1"));
        let other = keys.find_or_start("k", [2; 32], &runs, || start("r3")).unwrap_err();
        assert_eq!(other.status.as_u16(), 422);
        assert!(keys.find_or_start("", [1; 32], &runs, || start("r4")).is_err());
        runs.remove(&first.id);
        let gone = keys.find_or_start("k", [1; 32], &runs, || start("r5")).unwrap_err();
        assert_eq!(gone.body.code, ErrorCode::RunGone);
    }
}
