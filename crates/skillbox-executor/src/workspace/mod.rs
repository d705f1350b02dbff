//! The workspace: the one place where a run may write, from its making to the collection of what it holds.

mod beneath;
mod candidates;
mod collect;
mod content;
pub(crate) mod layout;
mod live_files;
mod mime;
mod remove;
mod space;
mod stage;

pub(crate) use beneath::{open_directory, open_parent, tree_usage};
pub(crate) use collect::Acceptance;
pub use collect::{Collected, Outputs, collect};
pub use live_files::{LiveFile, find_live_file};
pub use mime::mime_type;
pub use remove::remove_tree;
pub use space::{Backing, Owner, Workspace, WorkspaceError};
pub(crate) use stage::copy_tree;
pub use stage::{InputSource, ReadyInput, StageError, Staged, StagedLink, open_in_workspace, stage_inputs};
