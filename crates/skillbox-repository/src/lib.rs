//! Discovers skills: sources in, a catalogue with diagnostics out.
//!
//! The first room of every run. It reads SKILL.md files in two ways: leniently, so that a catalogue loses
//! nothing that can be understood, and strictly, with the verdicts and texts of the reference tool. It never
//! executes anything and never writes.

mod everyday_yaml;
mod excerpt;
mod frontmatter;
mod lenient;
mod name_rules;
mod node;
mod parse_code;
mod skill_md;
mod skill_meta;
pub mod strict;
mod yaml;

pub use excerpt::render;
pub use frontmatter::{Head, frontmatter_end, split_body};
pub use name_rules::{MAX_NAME_CHARS, NameFault, name_faults};
pub use parse_code::ParseCode;
pub use skill_md::{MAX_SKILL_MD_BYTES, Parsed, parse_lenient};
pub use skill_meta::{SkillMeta, Steering};
