//! Reading that loses nothing: odd frontmatter is understood where it can be, and explained.

mod advice;
mod allowed_tools;
mod fields;
mod findings;
mod json;
mod repair;
mod source;
mod verbatim;

pub(crate) use advice::advise;
pub(crate) use fields::read_fields;
pub(crate) use findings::Findings;
pub(crate) use source::with_frontmatter;
pub use verbatim::frontmatter_json;
