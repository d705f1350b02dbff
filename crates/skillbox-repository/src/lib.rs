//! Discovers skills: sources in, a catalog with diagnostics out.
//!
//! This is the first step of every run. SKILL.md files are parsed in two ways: leniently, so that the catalog contains
//! every usable skill, and strictly, with the same verdicts and messages as the reference tool, skills-ref. The crate
//! never executes anything and never writes into a skill.

mod catalog;
mod diagnostics;
mod fs;
mod parallel;
mod parse;
mod repository;
mod scan;
mod search;
mod skill;
pub mod strict;
mod watch;

// Where skills come from.
pub use scan::ScanOptions;
pub use skill::{BUILT_IN_SKILLS, EmbeddedFile, EmbeddedSkills, Scope, Source};

// The catalog of all sources, and its updates.
pub use catalog::{Catalog, CatalogChange, ShadowedSkill, nearest_names};
pub use repository::Repository;
pub use search::{SearchHit, SearchRank, search};
pub use watch::{WatchError, WatchHandle, WatchMode, WatchOptions, is_remote_file_system};

// Whether a file changed, for caches of what was read.
pub use fs::{FileStamp, StampComparison};

// One skill and its files.
pub use skill::{BudgetReader, ReadBudget, SkillLimits};
pub use skill::{
    Resource, ResourceKind, ResourceListing, SkillDir, SkillEntry, SkillFile, SkillMdText, SkillReadError,
};
pub use skill::{SkillTree, TreeDigest, TreeEntry, TreeEntryKind, content_digest};

// The text of a SKILL.md.
pub use parse::{FrontmatterEnd, find_frontmatter_end, frontmatter_json, split_frontmatter};
pub use parse::{InvocationSettings, MAX_SKILL_MD_BYTES, ParsedSkillMd, SkillMeta, parse_lenient};
pub use parse::{MAX_NAME_CHARS, NameViolation, find_name_violations};

// Diagnostics.
pub use diagnostics::{ParseCode, ScanCode, render_diagnostics};
pub use skillbox_model::{Diagnostic, Severity};
