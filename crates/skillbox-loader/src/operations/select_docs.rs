//! Selects which documents of a skill are shown.

use super::list_docs::path_strings;
use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::StateOperation;
use crate::dialect::Dialect;
use crate::loader_error::LoaderError;
use crate::prompt::{PromptDoc, render_plain_docs, render_tagged_docs};
use crate::sanitize::sanitize_markdown_line;
use crate::settings::Settings;
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
        // With `add`, the caller has seen the documents of the earlier selection already.
        let (operation, selection, added) = match mode {
            DocsMode::Add if !all => {
                let mut selection = self.state.docs(self.agent, &skill.name).cloned().unwrap_or_default();
                selection.add(named.iter().cloned());
                let added = DocSelection::chosen(named.clone());
                // The operation adds instead of replacing, so that a parallel call's additions are kept.
                let operation = StateOperation::AddDocs {
                    agent,
                    skill: name,
                    docs: named,
                };
                (operation, selection, added)
            }
            _ => {
                let selection = match mode {
                    DocsMode::Clear => DocSelection::default(),
                    _ if all => DocSelection::All,
                    _ => DocSelection::chosen(named),
                };
                let operation = StateOperation::SelectDocs {
                    agent,
                    skill: name,
                    docs: selection.clone(),
                };
                (operation, selection.clone(), selection)
            }
        };
        let (selected_docs, include_all_docs) = match &selection {
            DocSelection::All => (path_strings(&available), true),
            DocSelection::Chosen(docs) => (path_strings(docs), false),
        };
        // Without a prompt that shows the documents, the model gets them here.
        let (docs, warnings) = if self.settings.delivery().in_prompt() {
            (Vec::new(), Vec::new())
        } else {
            self.read_docs(skill, &added)
        };
        let result = SelectDocsResult {
            skill: skill.name.clone(),
            mode,
            selected_docs,
            include_all_docs,
            loaded: self.state.is_loaded(self.agent, &skill.name),
            docs: docs.iter().map(|doc| self.result_doc(doc)).collect(),
            warnings,
        };
        Ok(OperationOutcome {
            text: render_selection(self.settings, &result, &docs),
            result,
            delta: operation.into(),
        })
    }
}

fn render_selection(settings: &Settings, result: &SelectDocsResult, shown_docs: &[PromptDoc]) -> String {
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
    let note = if result.loaded || !settings.delivery().in_prompt() {
        ""
    } else {
        " (shown once the skill is loaded)"
    };
    let line = format!("selected documents of {skill}: {docs}{note}");
    match settings.dialect {
        _ if shown_docs.is_empty() => line,
        Dialect::Trpc => format!("{line}\n{}", render_plain_docs(shown_docs)),
        _ => format!("{line}\n\n{}", render_tagged_docs(shown_docs)),
    }
}
