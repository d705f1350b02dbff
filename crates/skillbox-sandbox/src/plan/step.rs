//! The plan: numbered steps, each with one operation.

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
    /// Its number, which failures name.
    pub number: u16,
    /// The layers that it is part of; a step without layers must succeed.
    pub layers: Vec<Layer>,
    /// What a failure means: `Required` ends the launch; after `Preferred` the failure is recorded and the launch
    /// continues.
    pub need: Need,
    /// What is done.
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

/// An operation of the last phase: what the process that executes the command applies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReleaseOp<'a> {
    Run(&'a RunOp),
    Confine(&'a ConfineOp),
}

impl Step {
    /// When the step is applied.
    pub fn phase(&self) -> Phase {
        self.op.phase()
    }

    /// Whether both steps do the same, whatever number they have in their plans.
    pub(crate) fn does_same_as(&self, other: &Self) -> bool {
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

/// The steps that are applied for the run.
pub(crate) fn release_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, ReleaseOp<'_>)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Run(op) => Some((step, ReleaseOp::Run(op))),
        Op::Confine(op) => Some((step, ReleaseOp::Confine(op))),
        Op::Template(_) | Op::Spawn(_) | Op::Prepare(_) => None,
    })
}

/// The steps of the last phase that need the run.
pub(crate) fn run_steps(steps: &[Step]) -> impl Iterator<Item = (&Step, &RunOp)> {
    steps.iter().filter_map(|step| match &step.op {
        Op::Run(op) => Some((step, op)),
        _ => None,
    })
}

/// The steps that confine every process of the sandbox in the same way.
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

/// A step as people and other programs read it: the phase is a field, and the operation does not repeat it.
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

/// The names of the operations are unique over all enums.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Op", untagged)]
enum TextOp {
    Template(TemplateOp),
    Spawn(SpawnOp),
    Prepare(PrepareOp),
    Run(RunOp),
    Confine(ConfineOp),
}

/// A step between the server and the spawner.
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
