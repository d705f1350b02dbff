//! The prompt section: what an agent is told of its skills.

mod agentskills;
mod bodies;
mod deepagents;
mod fit;
mod guidance;
mod listed;
mod markdown_list;
mod resource_summary;
mod saa;
mod section;
mod skillbox;
mod source_label;
mod template;
mod trpc;
mod warnings;

pub(crate) use bodies::{BodyText, DocBody, loaded_block};
pub(crate) use listed::shown_directory;
pub(crate) use resource_summary::resource_summary;
pub(crate) use section::{PromptInput, prompt_section};
pub use source_label::SourceView;
pub use template::{PromptTemplate, TemplateError};
