//! Parses the text of a SKILL.md leniently: odd frontmatter still loads, with a diagnostic.

mod allowed_tools;
mod body_length;
mod delimiters;
mod fields;
mod file_diagnostics;
mod frontmatter;
mod frontmatter_json;
mod json;
mod metadata_fallback;
mod name_rules;
mod python_text;
mod python_yaml;
mod repair;
mod skill_md;
mod skill_meta;
mod yaml;

pub(crate) use body_length::check_skill_md_body;
pub use delimiters::{FrontmatterEnd, find_frontmatter_end, split_frontmatter};
pub use frontmatter_json::frontmatter_json;
pub(crate) use metadata_fallback::find_declared_name;
pub(crate) use name_rules::normalize_name;
pub use name_rules::{MAX_NAME_CHARS, NameViolation, find_name_violations};
pub(crate) use python_text::python_strip;
pub(crate) use python_yaml::{PythonYamlError, parse_reference_yaml};
pub use skill_md::{MAX_SKILL_MD_BYTES, ParsedSkillMd, parse_lenient};
pub(crate) use skill_md::{SKILL_MD_NAMES, is_skill_md_name, parse_with_fallback};
pub use skill_meta::{InvocationSettings, SkillMeta};
pub(crate) use yaml::{Content, Node};
