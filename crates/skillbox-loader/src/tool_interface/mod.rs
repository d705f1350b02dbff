//! The interface of the tools: their inputs, their results, and their definitions for a model.

mod definition;
mod input;
mod result;
mod schema;

pub use definition::{ToolDefinition, ToolFormat, ToolOwner};
pub(crate) use definition::{VisibleSkills, define_tools};
pub(crate) use input::{DeepagentsSkillInput, SaaReadInput};
pub use input::{
    DocsMode, ListInput, LoadInput, ReadInput, RegisterToolsInput, SaaSkillInput, SearchInput, SelectDocsInput,
    SkillInput,
};
pub use result::{
    ForkedSession, ListResult, ListedSkill, LoadResult, ReadResult, RegisterToolsResult, ResultDoc, SearchHit,
    SearchResult, SelectDocsResult, SetDisabledResult, UnloadResult,
};
pub use schema::{accept_error, make_portable};
