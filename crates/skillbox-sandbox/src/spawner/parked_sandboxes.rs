//! The parked sandboxes, and how many to keep.
//!
//! A parked sandbox has applied every step that does not depend on the run, and waits for the workspace, the skill, the
//! inputs and the command of a run. It serves one run. When the spawner is idle, it parks a replacement. The number of
//! parked sandboxes grows with the recent load, up to a limit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::cloned_child::ClonedChild;
use crate::kernel::socket;
use crate::kernel::wait::{WaitMode, reap};
use crate::plan::Step;
use crate::protocol::{ChildPlan, RunMessage, StepFailure, encode, receive_parking_failure};

/// The time without a launch after which a kind of run is discarded, together with its parked sandboxes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The time without a launch or an end of a run before the spawner replaces a used sandbox while another one is still
/// parked. Parking takes as much CPU time as a short run. It would slow down a run that has just started, or the server
/// that returns the result of a run.
const REFILL_DELAY: Duration = Duration::from_millis(3);

/// The minimum number of parked sandboxes for a kind of run: one for the next run, and one for a run that follows at
/// once.
const MIN_PARKED_PER_KIND: usize = 2;

/// The parked sandboxes of a spawner.
pub(super) struct ParkedSandboxes {
    /// The maximum number of parked sandboxes; with 0, one is parked if the server requests it.
    limit: usize,
    /// The time of the last launch or end of a run.
    last_activity: Option<Instant>,
    parked: Vec<ParkedSandbox>,
    kinds: Vec<LaunchKind>,
}

/// A sandbox that waits for its run.
pub(super) struct ParkedSandbox {
    steps: Rc<[Step]>,
    /// None once the sandbox serves a run.
    child: Option<ClonedChild>,
    /// The socket that the run is sent through.
    run_socket: OwnedFd,
}

/// Runs that the same parked sandboxes can serve.
struct LaunchKind {
    /// The steps that do not depend on the run.
    steps: Rc<[Step]>,
    /// The number of sandboxes to keep parked.
    target_count: usize,
    last_used: Instant,
}

/// The steps that do not depend on the run.
fn steps_before_run(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| !step.op.depends_on_job())
}

impl ParkedSandboxes {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            last_activity: None,
            parked: Vec::new(),
            kinds: Vec::new(),
        }
    }

    /// Changes the limit, and ends the sandboxes above it.
    pub fn set_limit(&mut self, limit: u8) {
        self.limit = usize::from(limit);
        self.parked.truncate(self.limit);
        for kind in &mut self.kinds {
            kind.target_count = kind.target_count.min(self.limit);
        }
    }

    /// Sets the number of sandboxes to park for these steps to the minimum.
    pub fn request(&mut self, steps: &[Step]) {
        let count = MIN_PARKED_PER_KIND.min(self.limit.max(1));
        self.kind_of(steps).target_count = count;
    }

    fn kind_of(&mut self, steps: &[Step]) -> &mut LaunchKind {
        let known = self.kinds.iter().position(|kind| {
            let mut wanted = steps_before_run(steps);
            let is_same = |step: &Step| wanted.next().is_some_and(|other| step.equals_apart_from_number(other));
            kind.steps.iter().all(is_same) && wanted.next().is_none()
        });
        let index = known.unwrap_or_else(|| {
            self.kinds.push(LaunchKind {
                steps: steps_before_run(steps).cloned().collect(),
                target_count: 0,
                last_used: Instant::now(),
            });
            self.kinds.len() - 1
        });
        &mut self.kinds[index]
    }

    /// Takes a parked sandbox for these steps. If there is none, one more is parked for this kind of run from now on.
    pub fn take(&mut self, steps: &[Step]) -> Option<ParkedSandbox> {
        if self.limit == 0 && self.parked.is_empty() {
            return None;
        }
        self.last_activity = Some(Instant::now());
        let limit = self.limit;
        let kind = self.kind_of(steps);
        kind.last_used = Instant::now();
        let wanted = Rc::clone(&kind.steps);
        let found = self
            .parked
            .iter()
            .position(|sandbox| Rc::ptr_eq(&sandbox.steps, &wanted));
        let kind = self.kind_of(steps);
        if limit == 0 {
            kind.target_count = 0;
        } else if found.is_none() {
            kind.target_count = (kind.target_count + 1).max(MIN_PARKED_PER_KIND).min(limit);
        }
        found.map(|index| self.parked.swap_remove(index))
    }

    fn parked_count(&self, kind: &LaunchKind) -> usize {
        let of_kind = self
            .parked
            .iter()
            .filter(|sandbox| Rc::ptr_eq(&sandbox.steps, &kind.steps));
        of_kind.count()
    }

    /// The index of a kind with fewer parked sandboxes than its target.
    fn underfilled_kind(&self) -> Option<usize> {
        if self.parked.len() >= self.limit.max(1) {
            return None;
        }
        self.kinds
            .iter()
            .position(|kind| self.parked_count(kind) < kind.target_count)
    }

    /// The steps of the sandbox to park next.
    pub fn next_to_park(&self) -> Option<Rc<[Step]>> {
        let index = self.underfilled_kind()?;
        Some(Rc::clone(&self.kinds[index].steps))
    }

    /// Adds a parked sandbox.
    pub fn add(&mut self, sandbox: ParkedSandbox) {
        self.parked.push(sandbox);
    }

    /// Parks no more sandboxes with these steps until the next launch that could use one.
    pub fn stop_parking(&mut self, steps: &Rc<[Step]>) {
        for kind in self.kinds.iter_mut().filter(|kind| Rc::ptr_eq(&kind.steps, steps)) {
            kind.target_count = 0;
        }
    }

    /// Whether a sandbox should be parked.
    pub fn needs_preparation(&self) -> bool {
        self.underfilled_kind().is_some()
    }

    /// Records that a run has ended.
    pub fn record_end_of_run(&mut self) {
        self.last_activity = Some(Instant::now());
    }

    /// The time to wait before the next sandbox is parked. See [`REFILL_DELAY`].
    pub fn time_until_refill(&self) -> Duration {
        let is_urgent = self
            .underfilled_kind()
            .is_some_and(|index| self.parked_count(&self.kinds[index]) == 0);
        match self.last_activity {
            Some(last) if !is_urgent => REFILL_DELAY.saturating_sub(last.elapsed()),
            _ => Duration::ZERO,
        }
    }

    /// The time until a kind can be discarded.
    pub fn time_until_idle(&self) -> Option<Duration> {
        let oldest = self.kinds.iter().map(|kind| kind.last_used).min()?;
        Some(IDLE_TIMEOUT.saturating_sub(oldest.elapsed()))
    }

    /// Discards the kinds without a recent launch, and ends their parked sandboxes.
    pub fn discard_idle_kinds(&mut self) {
        self.kinds.retain(|kind| kind.last_used.elapsed() < IDLE_TIMEOUT);
        let kinds = &self.kinds;
        self.parked
            .retain(|sandbox| kinds.iter().any(|kind| Rc::ptr_eq(&kind.steps, &sandbox.steps)));
    }
}

impl ParkedSandbox {
    pub fn new(steps: &Rc<[Step]>, child: ClonedChild, run_socket: OwnedFd) -> Self {
        Self {
            steps: Rc::clone(steps),
            child: Some(child),
            run_socket,
        }
    }

    /// Whether the child is alive.
    pub fn is_alive(&self) -> bool {
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.child
            .as_ref()
            .is_some_and(|child| poll(&mut [PollFd::new(&child.pidfd, PollFlags::IN)], Some(&no_wait)) == Ok(0))
    }

    /// Whether the child started from this template.
    pub fn started_from_template(&self, template: Option<u64>) -> bool {
        self.child.as_ref().is_some_and(|child| child.template == template)
    }

    /// Why a dead sandbox could not be parked; none if it was killed.
    pub fn parking_failure(&self) -> Option<StepFailure> {
        match receive_parking_failure(self.run_socket.as_fd()) {
            Ok(failure) => failure,
            Err(error) => Some(StepFailure::outside_steps(
                "read the report of a parked sandbox",
                &error,
            )),
        }
    }

    /// Sends the run, and returns the child that will run it; none if the run does not fit into a message.
    pub fn send_run(mut self, plan: &ChildPlan<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<Option<ClonedChild>> {
        let message = encode(&RunMessage::of_plan(plan))?;
        if message.len() > socket::MAX_MESSAGE_BYTES || descriptors.len() > socket::MAX_DESCRIPTORS {
            return Ok(None);
        }
        socket::send(self.run_socket.as_fd(), &message, descriptors)?;
        Ok(self.child.take())
    }
}

impl Drop for ParkedSandbox {
    fn drop(&mut self) {
        let Some(child) = &self.child else { return };
        if let Some(pid) = Pid::from_raw(child.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
        // The control group, which is dropped next, can be removed only once it is empty.
        let _ = reap(Some(child.pid), WaitMode::Block);
    }
}
