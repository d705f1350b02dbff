//! Selects which documents of a skill are shown.

use super::list_docs::path_strings;
use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::StateOperation;
use crate::loader_error::LoaderError;
use crate::sanitize::sanitize_markdown_line;
use crate::state::DocSelection;
use crate::tool_interface::{DocsMode, SelectDocsInput, SelectDocsResult};

impl CallContext<'_> {
    /// Adds to the selected documents, replaces or clears them.
    pub fn select_docs(&self, input: &SelectDocsInput) -> Result<OperationOutcome<SelectDocsResult>, LoaderError> {
        let skill = self.find_skill(&input.skill)?;
        let mode = input.mode.unwrap_or_default();
        let available = self.doc_paths(skill, &self.open_dir(skill)?)?;
        let named = self.find_docs(skill, &available, input.docs.as_deref().unwrap_or_default())?;
        let all = input.include_all_docs == Some(true);
        let (agent, name) = (self.agent.clone(), skill.name.clone());
        let (operation, selection) = match mode {
            DocsMode::Add if !all => {
                let mut selection = self.state.docs(self.agent, &skill.name).cloned().unwrap_or_default();
                selection.add(named.iter().cloned());
                // The operation adds instead of replacing, so that a parallel call's additions are kept.
                let docs = named;
                (
                    StateOperation::AddDocs {
                        agent,
                        skill: name,
                        docs,
                    },
                    selection,
                )
            }
            _ => {
                let docs = match mode {
                    DocsMode::Clear => DocSelection::default(),
                    _ if all => DocSelection::All,
                    _ => DocSelection::chosen(named),
                };
                let selection = docs.clone();
                (
                    StateOperation::SelectDocs {
                        agent,
                        skill: name,
                        docs,
                    },
                    selection,
                )
            }
        };
        let (selected_docs, include_all_docs) = match &selection {
            DocSelection::All => (path_strings(&available), true),
            DocSelection::Chosen(docs) => (path_strings(docs), false),
        };
        let result = SelectDocsResult {
            skill: skill.name.clone(),
            mode,
            selected_docs,
            include_all_docs,
            loaded: self.state.is_loaded(self.agent, &skill.name),
        };
        Ok(OperationOutcome {
            text: render_selection(&result),
            result,
            delta: operation.into(),
        })
    }
}

fn render_selection(result: &SelectDocsResult) -> String {
    let skill = sanitize_markdown_line(result.skill.as_str());
    let docs: Vec<_> = result
        .selected_docs
        .iter()
        .map(|doc| sanitize_markdown_line(doc))
        .collect();
    let docs = if docs.is_empty() {
        "none".to_owned()
    } else {
        docs.join(", ")
    };
    let note = if result.loaded {
        ""
    } else {
        " (shown once the skill is loaded)"
    };
    format!("selected documents of {skill}: {docs}{note}")
}
