//! What the executor and pid 1 of a container say to each other, and how trees travel between them.
//!
//! The executor lists skills and inputs with [`walk`], the program of this crate places them with [`Place`], runs the
//! command, and sends what came of it back the same way. Both sides take the other's bytes for hostile: every length
//! has a limit, every path is parsed, nothing is followed. This crate knows no Docker and no async runtime.

mod frame;
mod message;
mod place;
mod tree;
mod tree_digest;

pub use frame::{Frame, FrameError, Frames, MAX_DATA, write_data, write_message, write_output};
pub use message::{
    Confinement, End, Entry, EntryKind, Facts, Job, KilledBy, PROTOCOL, SkillTree, ToExecutor, ToRunner,
};
pub use place::{Place, PlaceError};
pub use tree::{Walk, open_directory, open_file, walk};
pub use tree_digest::tree_digest;
