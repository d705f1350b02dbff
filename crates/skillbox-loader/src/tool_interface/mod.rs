//! The interface of the tools: their inputs, their results, and their definitions for a model.

mod definition;
mod input;
mod result;
mod schema;

pub(crate) use definition::define_tools;
pub use definition::{ToolDefinition, ToolFormat};
pub(crate) use input::SkillNameInput;
pub use input::{DocsMode, ListInput, LoadInput, ReadInput, SearchInput, SelectDocsInput, SkillInput, SkillNameOrPath};
pub use result::{
    DisableResult, DocText, ListResult, ListedSkill, LoadResult, ReadResult, SearchHit, SearchResult, SelectDocsResult,
    UnloadResult,
};
