//! The run that the spawner sends to a parked sandbox.

use std::borrow::Cow;
use std::io;

use serde::{Deserialize, Serialize};

use super::child_plan::ChildPlan;
use crate::plan::{Command, Phase, Step};

/// A run for a parked sandbox: the steps of the run phase, in order, and the command.
///
/// Descriptors of the message: the answer socket, stdin, stdout, stderr, and one detached mount for each step that
/// mounts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunMessage<'a> {
    pub steps: Vec<RunMessageStep<'a>>,
    pub command: Cow<'a, Command>,
}

/// A step of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RunMessageStep<'a> {
    /// The next of the steps that the sandbox knows already. Its number depends on the plan of the run.
    Known { number: u16 },
    /// A step that depends on the run.
    New(Cow<'a, Step>),
}

impl<'a> RunMessage<'a> {
    /// The message that turns a parked sandbox into the sandbox of this plan.
    pub fn of_plan(plan: &'a ChildPlan<'_>) -> Self {
        let run_phase = plan.steps.iter().filter(|step| step.phase() == Phase::Run);
        let steps = run_phase.map(|step| {
            if step.op.depends_on_job() {
                RunMessageStep::New(Cow::Borrowed(step))
            } else {
                RunMessageStep::Known { number: step.number }
            }
        });
        Self {
            steps: steps.collect(),
            command: Cow::Borrowed(&plan.command),
        }
    }
}

impl RunMessage<'static> {
    /// The plan of the run, with the known steps inserted. A known step that the message does not mention is an error:
    /// it would be a layer that the command lacks.
    pub fn into_plan(self, known: Vec<Step>) -> io::Result<ChildPlan<'static>> {
        let mismatch = || io::Error::from_raw_os_error(libc::EBADMSG);
        let mut known = known.into_iter();
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in self.steps {
            steps.push(match step {
                RunMessageStep::New(step) => step.into_owned(),
                RunMessageStep::Known { number } => Step {
                    number,
                    ..known.next().ok_or_else(mismatch)?
                },
            });
        }
        if known.next().is_some() {
            return Err(mismatch());
        }
        Ok(ChildPlan {
            steps: Cow::Owned(steps),
            command: self.command,
        })
    }
}
