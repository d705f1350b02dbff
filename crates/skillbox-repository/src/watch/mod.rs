//! Updates a catalog in the background.
//!
//! The kernel reports changed names in the directories of the sources (through the `notify` crate), and only these are
//! checked. Events are collected until they pause, so that an unpacked archive is one change. A debouncer crate is not
//! suitable, because [`Repository::refresh`](crate::Repository::refresh) must not wait for a pause: at the start of a
//! run it processes the events of all changes before the call.
//!
//! Some directories are polled instead, at the cost of one `stat` each: if the kernel has no watches left, if the file
//! system is remote (changes by other hosts cause no events), or if a directory has two paths (events arrive for only
//! one of them).

mod change_flag;
mod directory_watches;
mod event_queue;
mod handle;
mod options;
mod remote_fs;
mod sync_cookies;
mod watch_loop;

pub(crate) use handle::ActiveWatch;
pub use handle::{WatchError, WatchHandle};
pub use options::{WatchMode, WatchOptions};
pub use remote_fs::is_remote_file_system;
