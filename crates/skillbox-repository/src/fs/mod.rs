//! Directories and files as the scan and the skills access them: always relative to a descriptor.

mod contained_dir;
mod listing;
mod path_order;
mod stamp;

pub(crate) use contained_dir::{ContainedDir, OpenError};
pub(crate) use listing::{DirEntry, EntryKind, list_dir};
pub(crate) use path_order::{compare_paths, is_below};
pub(crate) use stamp::{Comparison, FileIdentity, FileStamp, file_identity};
