//! The workspace: the only directory that a run may write to, from its creation to the collection of outputs.

mod baseline;
mod candidates;
mod collect;
mod content;
mod file_content;
mod ipc_risk;
mod mime;
mod nofollow;
mod original_skill;
mod remove;
mod scratch;
mod skill_layers;
mod stage;
mod staging_limits;
mod workspace_dir;

pub use baseline::{Baseline, BaselineContent};
pub(crate) use collect::FileQuota;
pub use collect::{CollectedFile, Outputs, collect};
pub use ipc_risk::{IpcRisk, find_ipc_risk};
pub use mime::mime_type;
pub(crate) use nofollow::{open_directory, open_parent, tree_usage};
pub use original_skill::OriginalSkill;
pub use remove::remove_tree;
pub(crate) use scratch::{ScratchDirectory, remove_abandoned_scratch_directories};
pub(crate) use stage::copy_tree;
pub use stage::{InputSource, OpenInput, StageError, StagedInputs, StagedLink, open_in_workspace, stage_inputs};
pub use staging_limits::StagingLimits;
pub use workspace_dir::{Backing, Owner, Workspace, WorkspaceError};
