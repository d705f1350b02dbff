//! The thread of a server that forwards records.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use skillbox_model::ErrorCode;
use skillbox_runtime::Runtime;

use crate::audit_forward::{ForwardEvent, Forwarder, Receiver, StopSignal};
use crate::context::Context;
use crate::failure::Failure;
use crate::trust_setup::trust_failure;

/// The receiver of audit records, if one is configured.
pub fn forward_receiver(context: &Context<'_>) -> Result<Option<Receiver>, Failure> {
    let Some(target) = &context.trust.audit_forward else {
        return Ok(None);
    };
    let token = context.trust.audit_forward_token.as_deref();
    if token.is_some() && !target.is_confidential() {
        let message = format!("audit_forward: {target} would show the token of audit_forward_token to the network");
        return Err(Failure::new(ErrorCode::InvalidRequest, message).with_hint("use an https:// address"));
    }
    Receiver::new(target.clone(), token).map(Some)
}

/// Forwards records until it is dropped. The drop gives the last records three seconds.
pub struct ForwarderThread {
    stop: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
}

impl ForwarderThread {
    /// Starts the thread if a receiver is configured.
    pub fn start(context: &Context<'_>, runtime: &Runtime) -> Result<Option<Self>, Failure> {
        let Some(receiver) = forward_receiver(context)? else {
            return Ok(None);
        };
        let trust = runtime.trust();
        if !trust.is_recording() {
            return Ok(None);
        }
        // The first use creates the directory of the log.
        trust.audit_log().map_err(trust_failure)?;
        let key = trust.host_key().map_err(trust_failure)?;
        let forwarder = Forwarder::new(trust.directory().to_owned(), key, receiver);
        Self::spawn(forwarder).map(Some)
    }

    fn spawn(mut forwarder: Forwarder) -> Result<Self, Failure> {
        let stop = Arc::new(StopSignal::default());
        let thread = Builder::new().name("audit-forward".to_owned()).spawn({
            let stop = Arc::clone(&stop);
            move || {
                let target = forwarder.receiver().target().to_string();
                forwarder.follow(&stop, &mut |event| log_event(&target, &event));
            }
        });
        let thread = thread.map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

fn log_event(target: &str, event: &ForwardEvent) {
    match event {
        ForwardEvent::Failed(problem) => tracing::error!(target, problem, "audit records are not forwarded"),
        ForwardEvent::Recovered => tracing::info!(target, "audit records are forwarded again"),
        ForwardEvent::Missing(missing) => tracing::error!(
            target,
            first = missing.first,
            count = missing.count,
            "audit records were removed before they could be forwarded"
        ),
    }
}

impl Drop for ForwarderThread {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was logged by the hook.
            let _panicked = thread.join();
        }
    }
}
