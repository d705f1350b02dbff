//! The launch plan and its numbered steps.

use std::ffi::CString;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use skillbox_model::{Enforcement, Layer, ProfileName};

use super::op::{ConfineOp, Namespace, Op, Phase, PrepareOp, RunOp, SpawnOp, TemplateOp};
use crate::profile::Need;

/// The ordered list of everything that is done to start one script. [`super::plan`] creates it, `Display` prints it,
/// and the spawner and the child apply it step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The profile that the plan applies.
    pub profile: ProfileName,
    /// The steps, in order; the first has number 1.
    pub steps: Arc<[Step]>,
    /// The command that the last step executes.
    pub command: Command,
    /// What is enforced when every step succeeds.
    pub enforcement: Enforcement,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number, which error messages contain.
    pub number: u16,
    /// The layers that it enforces, fully or in part. A step without layers is always required.
    pub layers: Vec<Layer>,
    /// Whether a failure ends the launch (`Required`), or is recorded while the launch continues (`Preferred`).
    pub need: Need,
    /// The operation.
    pub op: Op,
}

/// The command of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments. A program without a slash is searched for in the `PATH` of `env`, inside the
    /// sandbox.
    #[serde(with = "super::c_string_list")]
    pub argv: Vec<CString>,
    /// The whole environment, `NAME=value`.
    #[serde(with = "super::c_string_list")]
    pub env: Vec<CString>,
}

/// An operation of [`Phase::Run`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunPhaseOp<'a> {
    Run(&'a RunOp),
    Confine(&'a ConfineOp),
}

impl Step {
    /// When the step is applied.
    pub fn phase(&self) -> Phase {
        self.op.phase()
    }

    /// Whether both steps are equal apart from their numbers.
    pub(crate) fn equals_apart_from_number(&self, other: &Self) -> bool {
        self.op == other.op && self.need == other.need && self.layers == other.layers
    }
}

/// The steps that build the template.
pub(crate) fn template_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, &TemplateOp)> + Clone {
    steps.iter().filter_map(|step| match &step.op {
        Op::Template(op) => Some((step, op)),
        _ => None,
    })
}

/// The steps that create the child.
pub(crate) fn spawn_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, &SpawnOp)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Spawn(op) => Some((step, op)),
        _ => None,
    })
}

/// The steps that pid 1 applies before the run is known.
pub(crate) fn prepare_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, &PrepareOp)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Prepare(op) => Some((step, op)),
        _ => None,
    })
}

/// The steps of [`Phase::Run`].
pub(crate) fn run_phase_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, RunPhaseOp<'_>)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Run(op) => Some((step, RunPhaseOp::Run(op))),
        Op::Confine(op) => Some((step, RunPhaseOp::Confine(op))),
        Op::Template(_) | Op::Spawn(_) | Op::Prepare(_) => None,
    })
}

/// The steps of [`Phase::Run`] that depend on the job.
pub(crate) fn run_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, &RunOp)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Run(op) => Some((step, op)),
        _ => None,
    })
}

/// The steps that confine a process. They are the same for every process of the sandbox.
pub(crate) fn confine_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, &ConfineOp)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Confine(op) => Some((step, op)),
        _ => None,
    })
}

/// Whether the kernel kills every process of the sandbox together with its pid 1.
pub(crate) fn has_pid_namespace(steps: &[Step]) -> bool {
    spawn_steps(steps)
        .any(|(_, op)| matches!(op, SpawnOp::Clone { namespaces, .. } if namespaces.contains(&Namespace::Pid)))
}

/// A step in text formats such as JSON: the phase is a field, and the operation is not nested in it.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Step")]
struct TextStep {
    number: u16,
    phase: Phase,
    layers: Vec<Layer>,
    need: Need,
    #[serde(with = "TextOp")]
    op: Op,
}

/// An operation without the name of its enum. This is unambiguous because no two enums have an operation of the same
/// name.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Op", untagged)]
enum TextOp {
    Template(TemplateOp),
    Spawn(SpawnOp),
    Prepare(PrepareOp),
    Run(RunOp),
    Confine(ConfineOp),
}

/// A step in the binary format between the server and the spawner.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Step")]
struct BinaryStep {
    number: u16,
    layers: Vec<Layer>,
    need: Need,
    op: Op,
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return BinaryStep::serialize(self, serializer);
        }
        TextStep {
            number: self.number,
            phase: self.phase(),
            layers: self.layers.clone(),
            need: self.need,
            op: self.op.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;

        if !deserializer.is_human_readable() {
            return BinaryStep::deserialize(deserializer);
        }
        let text = TextStep::deserialize(deserializer)?;
        if text.op.phase() != text.phase {
            return Err(D::Error::custom(format!(
                "step {} has an operation of another phase",
                text.number
            )));
        }
        Ok(Self {
            number: text.number,
            layers: text.layers,
            need: text.need,
            op: text.op,
        })
    }
}
