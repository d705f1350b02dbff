//! Registers tools of the host, which become visible with the skills that need them.

use serde_json::json;

use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::{StateDelta, StateOperation};
use crate::loader_error::LoaderError;
use crate::tool_interface::{RegisterToolsInput, RegisterToolsResult};

/// The maximum number of tools that the host of a session registers.
const MAX_HOST_TOOLS: usize = 512;
/// The maximum size of their definitions as JSON. The definitions are part of the state, which is stored at each change.
const MAX_HOST_TOOL_BYTES: usize = 512 << 10;

impl CallContext<'_> {
    /// Adds tools of the host to the session, and removes others.
    pub fn register_tools(
        &self,
        input: &RegisterToolsInput,
    ) -> Result<OperationOutcome<RegisterToolsResult>, LoaderError> {
        let grouped = input.grouped_tools.iter().flat_map(|(skill, tools)| {
            let field = format!("grouped_tools.{skill}");
            tools.iter().map(move |tool| (field.clone(), tool))
        });
        let by_name = input.tools.iter().map(|tool| ("tools".to_owned(), tool));
        for (field, tool) in grouped.chain(by_name) {
            if self.settings.dialect.find_tool(tool.name()).is_some() {
                let name = tool.name().to_owned();
                return Err(LoaderError::HostToolNameTaken { name, field });
            }
        }
        let mut delta = StateDelta::default();
        if !input.remove.is_empty() {
            delta.push(StateOperation::UnregisterTools {
                tools: input.remove.clone(),
            });
        }
        if !input.grouped_tools.is_empty() || !input.tools.is_empty() {
            delta.push(StateOperation::RegisterTools {
                grouped_tools: input.grouped_tools.clone(),
                tools: input.tools.clone(),
            });
        }
        let mut next = self.state.clone();
        next.apply(&delta);
        let count = next.host_tools.definitions.len();
        let bytes = json!(next.host_tools).to_string().len();
        if count > MAX_HOST_TOOLS || bytes > MAX_HOST_TOOL_BYTES {
            return Err(LoaderError::TooManyHostTools {
                max_tools: MAX_HOST_TOOLS,
                max_bytes: MAX_HOST_TOOL_BYTES,
            });
        }
        if next.host_tools == self.state.host_tools {
            delta = StateDelta::default();
        }
        let is_unknown = |skill: &&skillbox_model::SkillName| next.visible_skill(self.agent, skill.as_str()).is_none();
        let result = RegisterToolsResult {
            registered: next.host_tools.definitions.keys().cloned().collect(),
            visible: next
                .visible_host_tools(self.agent)
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
            unknown_skills: input.grouped_tools.keys().filter(is_unknown).cloned().collect(),
        };
        Ok(OperationOutcome {
            text: format!("{count} host tools are registered"),
            result,
            delta,
        })
    }
}
