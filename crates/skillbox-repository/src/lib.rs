//! Discovers skills: sources in, a catalogue with diagnostics out.
//!
//! The first room of every run. It reads SKILL.md files twice over: leniently, so that a catalogue loses
//! nothing that can be understood, and strictly, with the verdicts and texts of the reference tool. It never
//! executes anything and never writes.

mod frontmatter;
mod node;
mod parse_code;
mod skill_meta;
mod yaml;

pub use frontmatter::{Head, frontmatter_end, split_body};
pub use parse_code::ParseCode;
pub use skill_meta::{SkillMeta, Steering};
