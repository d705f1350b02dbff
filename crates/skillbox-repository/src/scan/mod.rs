//! Finds the skills of sources, merges them into a catalog, and updates both after changes.

mod change_check;
mod current_catalog;
mod dir_scanner;
mod merge;
mod nested_skills;
mod options;
mod rescan;
mod scanned_dir;
mod scanned_source;
mod skill_md_file;
mod skipped_names;

pub(crate) use current_catalog::CurrentCatalog;
pub use options::ScanOptions;
pub(crate) use rescan::SourceUpdate;
