//! Finds the skills of sources, merges them into a catalog, and updates both after changes.

mod change_check;
mod current_catalog;
mod dir_scanner;
mod log_sources;
mod merge;
mod options;
mod parse_skill_md;
mod pending_dir;
mod rescan;
mod scanned_dir;
mod scanned_source;
mod skill_md_file;
mod skill_scanner;
mod skipped_names;
mod subdirectories;

pub(crate) use current_catalog::CurrentCatalog;
pub use options::ScanOptions;
pub(crate) use rescan::SourceUpdate;
