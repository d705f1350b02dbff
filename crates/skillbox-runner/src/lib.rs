//! The protocol between the executor and the runner, which is pid 1 of a container, and the transfer of file trees
//! between them.
//!
//! The executor lists skills and inputs with [`walk_tree`]. The runner, the program of this crate, writes them with
//! [`TreeWriter`], runs the command, and sends the outputs back in the same way. Each side treats the bytes of the
//! other as hostile: every length has a limit, every path is parsed, and no link is followed. This crate uses neither
//! the Docker API nor an async runtime.

mod frame;
mod message;
mod tree_digest;
mod tree_walk;
mod tree_writer;

pub use frame::{Frame, FrameDecoder, FrameError, MAX_DATA_BYTES, write_data, write_message, write_output};
pub use message::{
    CommandResult, ContainerFacts, Entry, EntryKind, Job, KillCause, LandlockConfinement, PROTOCOL_VERSION, SkillTree,
    ToExecutor, ToRunner,
};
pub use tree_digest::{TreeRecord, digest_of_records, tree_digest, tree_records};
pub use tree_walk::{WalkOptions, exclude_nothing, open_directory, open_file, walk_tree};
pub use tree_writer::{TreeWriteError, TreeWriter};
