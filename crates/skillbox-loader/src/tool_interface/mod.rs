//! The interface of the tools: their inputs, their results, and their definitions for a model.

mod definition;
mod input;
mod result;
mod schema;

pub(crate) use definition::define_tools;
pub use definition::{ToolDefinition, ToolFormat};
pub(crate) use input::DeepagentsSkillInput;
pub use input::{DocsMode, ListInput, LoadInput, ReadInput, SaaSkillInput, SearchInput, SelectDocsInput, SkillInput};
pub use result::{
    ListResult, ListedSkill, LoadResult, ReadResult, ResultDoc, SearchHit, SearchResult, SelectDocsResult,
    SetDisabledResult, UnloadResult,
};
