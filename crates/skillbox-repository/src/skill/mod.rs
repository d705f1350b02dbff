//! Skills and their files, on disk or embedded in the program.

mod check;
mod digest;
mod docs;
mod embedded;
mod embedded_digest;
mod excluded_names;
mod read_error;
mod read_limits;
mod resources;
mod skill_dir;
mod skill_entry;
mod skill_file;
mod skill_tree;
mod source;

pub use digest::{TreeDigest, content_digest};
pub use embedded::{BUILT_IN_SKILLS, EmbeddedFile, EmbeddedSkills};
pub use read_error::SkillReadError;
pub use read_limits::{BudgetReader, ReadBudget, SkillLimits};
pub use resources::{Resource, ResourceKind, ResourceListing};
pub use skill_dir::{SkillDir, SkillMdText};
pub use skill_entry::SkillEntry;
pub use skill_file::SkillFile;
pub use skill_tree::{SkillTree, TreeEntry, TreeEntryKind};
pub(crate) use source::SourceInfo;
pub use source::{Scope, Source};
