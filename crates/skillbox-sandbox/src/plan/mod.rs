//! The launch plan: a list of every step of a launch, which can be printed, compared and applied.

mod build;
mod c_string_list;
mod command;
mod display;
mod enforcement;
mod error;
mod filesystem;
mod job;
mod landlock;
mod limits;
mod op;
mod step;
mod step_list;

pub use build::{HOSTNAME, SANDBOX_IDS, plan};
pub(crate) use enforcement::record_failed_step;
pub use error::PlanError;
pub use job::{
    Bind, BindAccess, BindKind, BindOwner, CopyMethod, Job, ListeningPorts, UnconfinedPolicy, WorkspaceSource,
    WritableSkill,
};
pub use op::{
    ConfineOp, FileRights, LandlockRule, Namespace, Op, Phase, PrepareOp, ResourceLimit, RunOp, SpawnOp, TemplateOp,
    WorkspaceMount,
};
pub use step::{Command, LaunchPlan, Step};
pub(crate) use step::{
    RunPhaseOp, confine_steps, has_pid_namespace, prepare_steps, run_phase_steps, run_steps, spawn_steps,
    template_steps,
};
