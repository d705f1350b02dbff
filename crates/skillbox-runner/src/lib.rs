//! The protocol between the executor and pid 1 of a container, and the transfer of trees between them.
//!
//! The executor lists skills and inputs with [`walk_tree`]. The program of this crate writes them with [`TreeWriter`], runs
//! the command, and sends its outputs back in the same way. Both sides treat the bytes of the other as hostile: every length
//! has a limit, every path is parsed, and no link is followed. This crate uses no Docker and no async runtime.

mod frame;
mod message;
mod tree_digest;
mod tree_walk;
mod tree_writer;

pub use frame::{Frame, FrameError, Frames, MAX_DATA, write_data, write_message, write_output};
pub use message::{
    Confinement, ContainerFacts, Entry, EntryKind, Job, KillCause, PROTOCOL, RunEnd, SkillTree, ToExecutor, ToRunner,
};
pub use tree_digest::tree_digest;
pub use tree_walk::{WalkOptions, open_directory, open_file, walk_tree};
pub use tree_writer::{TreeWriteError, TreeWriter};
