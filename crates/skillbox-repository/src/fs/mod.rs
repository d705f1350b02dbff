//! Directories and files as the scan and the skills access them: always relative to a descriptor.

mod contained_dir;
mod file_stamp;
mod listing;
mod path_order;

pub(crate) use contained_dir::{ContainedDir, OpenError};
pub(crate) use file_stamp::{FileIdentity, file_identity};
pub use file_stamp::{FileStamp, StampComparison};
pub(crate) use listing::{DirEntry, EntryKind, list_dir};
pub(crate) use path_order::{compare_paths, is_below};
