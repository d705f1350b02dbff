//! The one thread that carries the connections of all runs.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use skillbox_model::{GrantedSecret, SecretInjection};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::allow_list::AllowList;
use crate::credentials::{CredentialsError, RunCredentials};
use crate::limits::EgressLimits;
use crate::resolver::{AddressSource, FixedAddress, Resolver};
use crate::run_network::{RunNetwork, RunSockets};
use crate::run_state::RunState;
use crate::tls_roots::{LoadedRoots, TlsRoots};

/// Why the network of a run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The thread could not be started.
    #[error("the thread for network connections cannot be started")]
    Thread(#[source] io::Error),
    /// The sockets of the run cannot be used.
    #[error("the sockets of the run cannot be used")]
    Sockets(#[source] io::Error),
    /// The certificate authority or the placeholders of the run could not be made.
    #[error("the certificate authority and the placeholders of the run cannot be made")]
    Credentials(#[from] CredentialsError),
}

/// Carries the connections of runs. One thread serves all of them; it starts with the first run that has a network.
#[derive(Clone, Debug)]
pub struct Egress(Arc<Inner>);

struct Inner {
    resolver: Arc<Resolver>,
    roots: Arc<LoadedRoots>,
    limits: EgressLimits,
    thread: Mutex<Option<EgressThread>>,
}

struct EgressThread {
    runtime: Handle,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Egress {
    /// Nothing is started yet. The stated addresses take precedence over the source.
    pub fn new(fixed: Vec<FixedAddress>, source: AddressSource, roots: TlsRoots, limits: EgressLimits) -> Self {
        Self(Arc::new(Inner {
            resolver: Arc::new(Resolver::new(fixed, source)),
            roots: Arc::new(LoadedRoots::new(roots)),
            limits,
            thread: Mutex::new(None),
        }))
    }

    /// Makes what a run with these rules and secrets needs before it starts.
    pub fn issue_credentials(
        &self,
        allowed: &AllowList,
        secrets: &[GrantedSecret],
    ) -> Result<RunCredentials, EgressError> {
        if !reads_requests(allowed, secrets) {
            return Ok(RunCredentials::none());
        }
        let credentials = RunCredentials::with_authority(&self.0.roots.bundle()).map_err(CredentialsError::from)?;
        Ok(credentials.with_secrets(secrets)?)
    }

    /// Starts to carry the connections of one run.
    pub fn open(
        &self,
        sockets: RunSockets,
        allowed: AllowList,
        credentials: RunCredentials,
    ) -> Result<RunNetwork, EgressError> {
        let runtime = self.0.runtime().map_err(EgressError::Thread)?;
        let state = RunState::new(
            (allowed, credentials),
            self.0.limits.clone(),
            (Arc::clone(&self.0.resolver), Arc::clone(&self.0.roots)),
        );
        let _entered = runtime.enter();
        RunNetwork::start(state, sockets, &runtime).map_err(EgressError::Sockets)
    }
}

/// Whether skillbox reads requests of a run, which then trusts an authority of its own: they are restricted, or secrets are
/// added to them.
pub fn reads_requests(allowed: &AllowList, secrets: &[GrantedSecret]) -> bool {
    let has_placeholders = secrets.iter().any(|secret| secret.injection == SecretInjection::Header);
    allowed.has_restrictions() || has_placeholders
}

impl Default for Egress {
    fn default() -> Self {
        Self::new(
            Vec::new(),
            AddressSource::Host,
            TlsRoots::default(),
            EgressLimits::default(),
        )
    }
}

impl Inner {
    fn runtime(&self) -> io::Result<Handle> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = thread.as_ref() {
            return Ok(running.runtime.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let joined = std::thread::Builder::new().name("egress".to_owned()).spawn(move || {
            // Dropping the sender stops the thread as well.
            let _ = runtime.block_on(stopped);
        })?;
        *thread = Some(EgressThread {
            runtime: handle.clone(),
            stop,
            thread: joined,
        });
        Ok(handle)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(EgressThread { stop, thread, .. }) = thread {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("resolver", &self.resolver)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
