//! Chooses which documents of a skill are shown.

use super::doc_names::texts;
use crate::delta::StateOperation;
use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::one_line::one_line;
use crate::state::DocSelection;
use crate::tools::{DocsMode, SelectDocsInput, SelectDocsResult};

impl Engine<'_> {
    /// Adds to the chosen documents, replaces or clears them.
    pub fn select_docs(&self, input: &SelectDocsInput) -> Result<Answer<SelectDocsResult>, LoaderError> {
        let skill = self.skill(&input.skill)?;
        let mode = input.mode.unwrap_or_default();
        let available = self.docs_of(skill, &self.open(skill)?)?;
        let named = self.named_docs(skill, &available, input.docs.as_deref().unwrap_or_default())?;
        let all = input.include_all_docs == Some(true);
        let (agent, name) = (self.agent.clone(), skill.name.clone());
        let (operation, selection) = match mode {
            DocsMode::Add if !all => {
                let mut selection = self.state.docs(self.agent, &skill.name).cloned().unwrap_or_default();
                selection.add(named.iter().cloned());
                // Added, not replaced: what another call adds at the same time stays.
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
            DocSelection::All => (texts(&available), true),
            DocSelection::Chosen(docs) => (texts(docs), false),
        };
        let result = SelectDocsResult {
            skill: skill.name.clone(),
            mode,
            selected_docs,
            include_all_docs,
            loaded: self.state.is_loaded(self.agent, &skill.name),
        };
        Ok(Answer {
            text: selection_text(&result),
            result,
            delta: operation.into(),
        })
    }
}

fn selection_text(result: &SelectDocsResult) -> String {
    let skill = one_line(result.skill.as_str());
    let docs: Vec<_> = result.selected_docs.iter().map(|doc| one_line(doc)).collect();
    let docs = if docs.is_empty() {
        "none".to_owned()
    } else {
        docs.join(", ")
    };
    let later = if result.loaded {
        ""
    } else {
        " (shown once the skill is loaded)"
    };
    format!("selected documents of {skill}: {docs}{later}")
}
