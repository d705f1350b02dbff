//! What is known about a run when it has ended: logged as one event, and passed to the observer of the host.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use skillbox_model::{RunId, RunReport, RunRequest, SessionId, TenantName};

use crate::RunError;

/// A longer command is cut in the log.
const MAX_COMMAND_CHARS: usize = 4_000;

/// Where a run came from.
#[derive(Clone, Debug, Default)]
pub struct RunOrigin {
    /// The id of the request that a server received.
    pub request_id: Option<Arc<str>>,
    /// How long the run waited in the queue of a server.
    pub queue_wait: Duration,
}

/// The time that each phase of a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseDurations {
    /// Checking the request, and waiting for the session.
    pub accept: Duration,
    /// Hashing and storing the skill.
    pub freeze: Duration,
    /// Preparing the workspace and its inputs.
    pub stage: Duration,
    /// The script.
    pub run: Duration,
    /// Collecting the output files.
    pub collect: Duration,
    /// Saving and exporting the output files.
    pub save: Duration,
}

impl PhaseDurations {
    /// Each phase with its name, in the order of a run.
    pub fn by_name(&self) -> [(&'static str, Duration); 6] {
        [
            ("accept", self.accept),
            ("freeze", self.freeze),
            ("stage", self.stage),
            ("run", self.run),
            ("collect", self.collect),
            ("save", self.save),
        ]
    }
}

/// Measures phases that follow each other.
pub(crate) struct PhaseClock(Instant);

impl PhaseClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the phase before ended.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let phase = now - self.0;
        self.0 = now;
        phase
    }
}

/// A run that has ended, or was refused.
pub struct EndedRun<'a> {
    /// The run.
    pub run_id: &'a RunId,
    /// The tenant of a server.
    pub tenant: Option<&'a TenantName>,
    /// The session whose workspace it used.
    pub session: Option<&'a SessionId>,
    /// The request.
    pub request: &'a RunRequest,
    /// Where it came from.
    pub origin: &'a RunOrigin,
    /// The time from the request to the report.
    pub duration: Duration,
    /// The report with the phases, or why the run was refused or failed.
    pub outcome: Result<(&'a RunReport, PhaseDurations), &'a RunError>,
}

impl EndedRun<'_> {
    /// Logs the run as one event.
    pub(crate) fn log(&self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let report = self.outcome.as_ref().ok().map(|(report, _)| *report);
        let phases = self.outcome.as_ref().ok().map(|(_, phases)| phases);
        let error = self.outcome.as_ref().err().map(|error| error.body());
        let bytes_of_outputs = |report: &RunReport| report.output_files.iter().map(|file| file.size_bytes).sum::<u64>();
        tracing::info!(
            name: "run",
            run_id = self.run_id.as_str(),
            request_id = self.origin.request_id.as_deref(),
            tenant = self.tenant.map(|tenant| tenant.as_str()),
            session = self.session.map(|session| session.as_str()),
            skill = self.request.skill,
            digest = report.map(|report| report.skill_digest.to_string()),
            command = command_text(self.request),
            executor = report.map(|report| report.executor.to_string()),
            profile = report.map(|report| report.profile.as_str()),
            tier = report.map(|report| format!("{:?}", report.enforcement.tier)),
            shortfall = report.and_then(|report| report.enforcement.shortfall()),
            ended_by = report.map(|report| report.ended_by.as_str()),
            exit_code = report.and_then(|report| report.exit_code),
            signal = report.and_then(|report| report.signal),
            error = error.as_ref().map(|error| error.code.as_str()),
            reason = error.as_ref().map_or(report.and_then(|report| report.hint.as_deref()), |error| Some(&error.message)),
            duration_ms = report.map(|report| report.duration_ms),
            total_ms = milliseconds(self.duration),
            queue_ms = milliseconds(self.origin.queue_wait),
            accept_ms = phases.map(|phases| milliseconds(phases.accept)),
            freeze_ms = phases.map(|phases| milliseconds(phases.freeze)),
            stage_ms = phases.map(|phases| milliseconds(phases.stage)),
            collect_ms = phases.map(|phases| milliseconds(phases.collect)),
            save_ms = phases.map(|phases| milliseconds(phases.save)),
            stdout_bytes = report.map(|report| report.stdout_bytes),
            stderr_bytes = report.map(|report| report.stderr_bytes),
            output_bytes = report.map(bytes_of_outputs),
            cpu_ms = report.map(|report| report.usage.cpu_ms),
            peak_memory_bytes = report.and_then(|report| report.usage.peak_memory_bytes),
            "run"
        );
    }
}

/// A number of milliseconds with three digits after the point.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// Receives every run of a runtime and of its tenants when it has ended.
#[derive(Clone, Default)]
pub(crate) struct RunObserver(Arc<OnceLock<ObserverFunction>>);

type ObserverFunction = Box<dyn Fn(&EndedRun<'_>) + Send + Sync>;

impl RunObserver {
    /// Sets the function, once.
    pub(crate) fn set(&self, function: ObserverFunction) {
        let _is_set_once = self.0.set(function);
    }

    pub(crate) fn observe(&self, run: &EndedRun<'_>) {
        if let Some(function) = self.0.get() {
            function(run);
        }
    }
}

impl fmt::Debug for RunObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunObserver")
            .field("is_set", &self.0.get().is_some())
            .finish()
    }
}

/// The command line, the script with its arguments, or the argv, cut for people.
pub(crate) fn command_text(request: &RunRequest) -> String {
    let text = full_command_text(request);
    if text.chars().count() <= MAX_COMMAND_CHARS {
        return text;
    }
    let start: String = text.chars().take(MAX_COMMAND_CHARS).collect();
    format!("{start}…")
}

/// The whole command. Audit records cut it themselves, and add its digest.
pub(crate) fn full_command_text(request: &RunRequest) -> String {
    let words = request
        .script
        .iter()
        .chain(&request.args)
        .chain(&request.argv)
        .map(String::as_str);
    match &request.command {
        Some(command) => command.clone(),
        None => words.collect::<Vec<_>>().join(" "),
    }
}
