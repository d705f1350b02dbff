//! What the connections of one run share.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use skillbox_model::NetworkReport;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::allow_list::{AllowList, AllowedRequests};
use crate::credentials::RunCredentials;
use crate::denial::{Denial, Failure, Refusal, Target};
use crate::limits::EgressLimits;
use crate::name_table::NameTable;
use crate::record::NetworkRecord;
use crate::resolver::Resolver;
use crate::tls_roots::LoadedRoots;

/// The most bodies of requests of one run that are read as a whole at the same time.
const MAX_BODY_BUFFERS: usize = 16;

/// What the connections of one run share.
#[derive(Debug)]
pub(crate) struct RunState {
    pub allowed: AllowList,
    pub names: NameTable,
    pub limits: EgressLimits,
    pub resolver: Arc<Resolver>,
    pub record: NetworkRecord,
    pub credentials: RunCredentials,
    pub roots: Arc<LoadedRoots>,
    /// One permit for each body of a request that is read as a whole.
    pub body_buffers: Semaphore,
    open_connections: Arc<Semaphore>,
    connections: AtomicU64,
    bytes: AtomicU64,
    /// When the bytes so far fit into the rate.
    rate_until: Mutex<Instant>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
}

impl RunState {
    pub fn new(
        (allowed, credentials): (AllowList, RunCredentials),
        limits: EgressLimits,
        (resolver, roots): (Arc<Resolver>, Arc<LoadedRoots>),
    ) -> Self {
        Self {
            allowed,
            names: NameTable::default(),
            body_buffers: Semaphore::new(MAX_BODY_BUFFERS),
            open_connections: Arc::new(Semaphore::new(limits.open_connections)),
            limits,
            resolver,
            record: NetworkRecord::default(),
            credentials,
            roots,
            connections: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            rate_until: Mutex::new(Instant::now()),
            tasks: TaskTracker::new(),
            cancelled: CancellationToken::new(),
        }
    }

    /// Whether a host may receive only some requests.
    pub fn restricts_requests(&self, target: &Target) -> bool {
        self.allowed.requests(&target.host, target.port) != AllowedRequests::All
    }

    /// Whether the requests to a host have to be read: they are restricted, or may contain placeholders.
    pub fn reads_requests(&self, target: &Target) -> bool {
        self.restricts_requests(target) || self.credentials.placeholders.has_secret_for(target)
    }

    /// Starts a task that ends with the run.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cancelled = self.cancelled.clone();
        self.tasks.spawn(async move {
            cancelled.run_until_cancelled_owned(task).await;
        });
    }

    /// A guard that ends all tasks when it is dropped.
    pub fn cancel_guard(&self) -> DropGuard {
        self.cancelled.clone().drop_guard()
    }

    /// Lets open connections end for a moment, and then ends all tasks.
    pub async fn finish(&self, grace: Duration) -> NetworkReport {
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            self.cancelled.cancel();
            self.tasks.wait().await;
        }
        self.record.report()
    }

    /// Counts one more connection, which is open until the permit is dropped.
    pub fn open_connection(&self) -> Result<OwnedSemaphorePermit, Denial> {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= self.limits.connections {
            return Err(Denial::TooManyConnections(self.limits.connections));
        }
        Arc::clone(&self.open_connections)
            .try_acquire_owned()
            .map_err(|_| Denial::TooManyOpenConnections(self.limits.open_connections))
    }

    /// Counts transferred bytes. Returns until when the connection has to pause, or the denial if the limit is reached.
    pub fn count_bytes(&self, count: u64) -> Result<Option<Instant>, Denial> {
        if self.bytes.fetch_add(count, Ordering::Relaxed).saturating_add(count) > self.limits.bytes {
            return Err(Denial::TooManyBytes(self.limits.bytes));
        }
        let Some(rate) = self.limits.bytes_per_second else {
            return Ok(None);
        };
        let cost = Duration::from_secs_f64(count as f64 / rate.max(1) as f64);
        let mut until = self.rate_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Instant::now()) + cost;
        Ok(Some(*until))
    }

    pub fn record_denial(&self, target: &Target, denial: &Denial) {
        self.record
            .add_denial(&target.host.to_string(), Some(target.port), &denial.to_string());
    }

    pub fn record_refusal(&self, target: &Target, refusal: &Refusal) {
        match refusal {
            Refusal::Denied(denial) => self.record_denial(target, denial),
            Refusal::Failed(failure) => self.record_failure(target, failure),
        }
    }

    fn record_failure(&self, target: &Target, failure: &Failure) {
        self.record
            .add_failure(&target.host.to_string(), target.port, &failure.to_string());
    }
}
