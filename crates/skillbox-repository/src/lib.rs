//! Discovers skills: sources in, a catalogue with diagnostics out.
//!
//! The first room of every run. It reads SKILL.md files in two ways: leniently, so that a catalogue loses
//! nothing that can be understood, and strictly, with the verdicts and texts of the reference tool. It never
//! executes anything and never writes into a skill.

mod advice;
mod catalog;
mod contained;
mod digest;
mod discover;
mod docs;
mod embedded;
mod entry;
mod everyday_yaml;
mod excerpt;
mod file_bytes;
mod frontmatter;
mod head;
mod lenient;
mod listing;
mod merge;
mod name_rules;
mod nearest;
mod nested;
mod node;
mod parallel;
mod parse_code;
mod place;
mod refresh;
mod repository;
mod resources;
mod scan_code;
mod scan_note;
mod search;
mod second_look;
mod skill_dir;
mod skill_md;
mod skill_meta;
mod source;
mod stamp;
pub mod strict;
mod tree;
mod visit;
mod watch;
mod yaml;

pub use embedded::{BUILT_IN, EmbeddedFile, EmbeddedSkills};
pub use source::{ScanOptions, Scope, Source};

pub use excerpt::render;
pub use frontmatter::{Head, frontmatter_end, split_body};
pub use lenient::frontmatter_json;
pub use name_rules::{MAX_NAME_CHARS, NameFault, name_faults};
pub use parse_code::ParseCode;
pub use scan_code::ScanCode;
pub use skill_md::{MAX_SKILL_MD_BYTES, Parsed, parse_lenient};
pub use skill_meta::{SkillMeta, Steering};
pub use skillbox_model::{Diagnostic, Severity};

pub use catalog::{Catalog, Shadowed};
pub use entry::SkillEntry;
pub use nearest::nearest;
pub use repository::{CatalogChange, Repository};
pub use search::{Hit, Rank, search};
pub use watch::{WatchError, WatchHandle, WatchMode, WatchOptions};

pub use digest::{TreeDigest, content_digest};
pub use file_bytes::FileBytes;
pub use resources::{Resource, ResourceKind};
pub use skill_dir::{SkillDir, SkillReadError, SkillText};
pub use tree::{SkillTree, TreeEntry, TreeEntryKind};
