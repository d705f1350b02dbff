//! The tools: what they are called with, what they give, and how a model is told of them.

mod definition;
mod input;
mod result;
mod schema;
mod tool;

pub(crate) use definition::definitions;
pub use definition::{ToolDefinition, ToolFormat};
pub(crate) use input::NamedSkill;
pub use input::{DocsMode, ListInput, LoadInput, ReadInput, SearchInput, SelectDocsInput, SkillInput, SkillPointer};
pub use result::{
    DisableResult, DocText, ListResult, ListedSkill, LoadResult, ReadResult, SearchHit, SearchResult, SelectDocsResult,
    UnloadResult,
};
pub use tool::Tool;
