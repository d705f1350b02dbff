//! `skillbox audit forward` and `status`: the receiver of audit records, and how far it is behind.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use skillbox_model::{ErrorCode, ExitCode, with_causes};
use skillbox_runtime::Trust;
use skillbox_trust::{ForwardStatus, forward_status};

use super::forwarder_thread::forward_receiver;
use super::output::{CommandOutput, print_output};
use super::points_in_time::format_time;
use crate::audit_forward::{ForwardEvent, ForwardPass, Forwarder, StopSignal};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::trust_setup::trust_failure;

/// How far the receiver is behind the log.
#[derive(Serialize)]
pub struct ReceiverStatus {
    receiver: String,
    #[serde(flatten)]
    status: ForwardStatus,
}

/// The result of one pass.
#[derive(Serialize)]
struct Forwarded {
    receiver: String,
    forwarded: u64,
}

pub fn no_receiver() -> Failure {
    Failure::new(ErrorCode::InvalidRequest, "no receiver of audit records is configured")
        .with_hint("set `audit_forward`, for example to syslog+unix:/dev/log")
}

/// The status of the configured receiver; `None` without one.
pub fn find_status(context: &Context<'_>, trust: &Trust) -> Result<Option<ReceiverStatus>, Failure> {
    let Some(target) = &context.trust.audit_forward else {
        return Ok(None);
    };
    let status = match trust.directory().join("audit").exists() {
        true => trust.host_key().and_then(|key| forward_status(trust.directory(), &key)),
        false => Ok(ForwardStatus::default()),
    };
    Ok(Some(ReceiverStatus {
        receiver: target.to_string(),
        status: status.map_err(trust_failure)?,
    }))
}

pub fn forward_once(context: &Context<'_>, trust: &Trust, terminal: &mut Terminal) -> Result<u8, Failure> {
    let mut forwarder = open(context, trust)?;
    let passed = forwarder.forward_all(None, &mut |event| report(&event, terminal));
    match passed {
        Ok(ForwardPass::Complete(forwarded) | ForwardPass::Stopped(forwarded)) => {
            let receiver = forwarder.receiver().target().to_string();
            print_output(&Forwarded { receiver, forwarded }, context, terminal)
        }
        Ok(ForwardPass::OtherProcess) => {
            let message = "another process of skillbox is forwarding this log";
            Err(Failure::new(ErrorCode::Busy, message).with_hint("see `skillbox audit status`"))
        }
        Err(error) => Err(Failure::new(ErrorCode::Storage, with_causes(&error))
            .with_hint("the records stay in the log; repeat the command when the receiver can be reached")),
    }
}

pub fn follow(context: &Context<'_>, trust: &Trust, terminal: &mut Terminal) -> Result<u8, Failure> {
    let mut forwarder = open(context, trust)?;
    let stop = Arc::new(StopSignal::default());
    let internal = |error: std::io::Error| Failure::from_error(ErrorCode::Internal, &error);
    let (mut signalled, handler) = UnixStream::pair().map_err(internal)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        pipe::register(signal, handler.try_clone().map_err(internal)?).map_err(internal)?;
    }
    let stopped = Arc::clone(&stop);
    let waiter = move || {
        // A byte is a signal, and nobody else writes one.
        let _signal = signalled.read(&mut [0]);
        stopped.stop();
    };
    // The thread ends with the process.
    let _detached = thread::Builder::new().spawn(waiter).map_err(internal)?;
    forwarder.follow(&stop, &mut |event| report(&event, terminal));
    Ok(ExitCode::OK)
}

fn open(context: &Context<'_>, trust: &Trust) -> Result<Forwarder, Failure> {
    let receiver = forward_receiver(context)?.ok_or_else(no_receiver)?;
    trust.audit_log().map_err(trust_failure)?;
    let key = trust.host_key().map_err(trust_failure)?;
    Ok(Forwarder::new(trust.directory().to_owned(), key, receiver))
}

/// Prints what operators should know on stderr.
fn report(event: &ForwardEvent, terminal: &mut Terminal) {
    let (tone, text) = match event {
        ForwardEvent::Failed(problem) => (Tone::Bad, format!("not forwarded: {problem}")),
        ForwardEvent::Recovered => (Tone::Good, "forwarded again".to_owned()),
        ForwardEvent::Missing(missing) => (
            Tone::Bad,
            match missing.count {
                Some(count) => format!(
                    "{count} records from sequence {} on were removed before they could be forwarded",
                    missing.first
                ),
                None => format!(
                    "the log was replaced; records from sequence {} on may be missing",
                    missing.first
                ),
            },
        ),
    };
    let mut page = terminal.page();
    page.labelled(0, Span::new(tone, "audit:"), 7, Tone::Plain, &text);
    // Records are forwarded even if stderr is closed.
    let _closed = terminal.print_message(page);
}

impl ReceiverStatus {
    /// One line for each fact, for a column of labels of this width.
    pub fn render_at(&self, page: &mut Page, indent: usize, column: usize) {
        page.labelled(indent, Span::plain("receiver"), column, Tone::Plain, &self.receiver);
        let records = |count: u64| plural(usize::try_from(count).unwrap_or(usize::MAX), "record");
        let (tone, pending) = match (self.status.pending, &self.status.problem) {
            (0, None) => (Tone::Good, "it has every record".to_owned()),
            (count, None) => (Tone::Plain, format!("{} to be forwarded", records(count))),
            (count, Some(_)) => (Tone::Warning, format!("{} to be forwarded", records(count))),
        };
        page.labelled(indent, Span::plain("behind"), column, tone, &pending);
        if let Some(problem) = &self.status.problem {
            let text = format!("since {}: {}", format_time(problem.since_ms), problem.message);
            page.labelled(indent, Span::plain("problem"), column, Tone::Bad, &text);
        }
        if self.status.missing > 0 {
            let text = format!(
                "{} were removed before they could be forwarded",
                records(self.status.missing)
            );
            page.labelled(indent, Span::plain("missing"), column, Tone::Bad, &text);
        }
    }
}

impl CommandOutput for ReceiverStatus {
    fn render(&self, page: &mut Page) {
        self.render_at(page, 0, 10);
    }

    fn exit_code(&self) -> u8 {
        match self.status.problem.is_none() && self.status.missing == 0 {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}

impl CommandOutput for Forwarded {
    fn render(&self, page: &mut Page) {
        let count = plural(usize::try_from(self.forwarded).unwrap_or(usize::MAX), "record");
        page.labelled(
            0,
            Span::new(Tone::Good, "forwarded"),
            11,
            Tone::Plain,
            &format!("{count} to {}", self.receiver),
        );
    }
}
