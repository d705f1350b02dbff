//! Reads the texts of loaded skills and their selected documents.

use std::io::Read;
use std::sync::Arc;

use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, SkillMdText, SkillReadError};

use super::substitute_arguments::substitute_arguments;
use crate::call_context::CallContext;
use crate::dialect::Dialect;
use crate::loader_error::LoaderError;
use crate::prompt::{LoadedSkillText, PromptDoc, shown_directory};
use crate::skill_view::SkillView;
use crate::state::{DocSelection, LoadedSkill};
use crate::turn_text_cache::CachedDocStart;

impl CallContext<'_> {
    /// Reads the texts of all skills that the agent has loaded, in loading order.
    pub(crate) fn read_loaded_skills(&self) -> Vec<LoadedSkillText> {
        let loaded = self.state.loaded_views(self.agent);
        loaded
            .map(|(loaded, skill)| self.read_loaded_skill(loaded, skill))
            .collect()
    }

    fn read_loaded_skill(&self, loaded: &LoadedSkill, skill: &SkillView) -> LoadedSkillText {
        let text = self.read_instructions(skill);
        let selection = self.state.docs(self.agent, &skill.name).cloned().unwrap_or_default();
        LoadedSkillText {
            name: skill.name.to_string(),
            directory: shown_directory(self.settings, skill).into_owned(),
            instructions: match text {
                Ok(text) => Ok(self.shown_instructions(&text, loaded.arguments.as_deref())),
                Err(error) => Err(error.to_error_body(self.settings.dialect).message),
            },
            allowed_tools: skill.allowed_tools.iter().map(|tool| tool.to_string()).collect(),
            docs: self.read_docs(skill, &selection).0,
        }
    }

    /// The part of a SKILL.md that the dialect shows: all of it, or what follows the frontmatter.
    pub(crate) fn shown_instructions(&self, text: &SkillMdText, arguments: Option<&str>) -> String {
        let shown = match self.settings.dialect {
            Dialect::Deepagents => &text.whole,
            _ => &text.body,
        };
        substitute_arguments(shown, arguments).into_owned()
    }

    /// Reads the instructions of a skill, at most once per turn.
    pub(crate) fn read_instructions(&self, skill: &SkillView) -> Result<Arc<SkillMdText>, LoaderError> {
        // A text of this turn stays valid, even if the skill has been removed since.
        if let Some(text) = self.texts.cached_instructions(&skill.name) {
            return Ok(text);
        }
        let text = self.open_dir(skill)?.read_skill_md();
        let text = Arc::new(text.map_err(|source| super::list_docs::unreadable_skill(skill, source))?);
        self.texts.store_instructions(&skill.name, &text);
        Ok(text)
    }

    /// Reads the selected documents, within the limits. A document that cannot be read is skipped and becomes one of the
    /// returned problems; its skill works without it.
    pub(crate) fn read_docs(&self, skill: &SkillView, selection: &DocSelection) -> (Vec<PromptDoc>, Vec<String>) {
        if selection.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut budget = self.settings.max_doc_bytes_per_skill;
        if let Some(cached) = self.texts.cached_docs(&skill.name, selection) {
            let docs = cached.iter().map(|(path, doc)| truncate_doc(&mut budget, path, doc));
            return (docs.collect(), Vec::new());
        }
        let dir = match self.open_dir(skill) {
            Ok(dir) => dir,
            Err(error) => return (Vec::new(), vec![error.to_error_body(self.settings.dialect).message]),
        };
        let selected: Arc<[RelPath]> = match selection {
            DocSelection::Chosen(docs) => docs.clone().into(),
            DocSelection::All => {
                let paths = self.texts.doc_paths(&skill.name, || self.doc_paths(skill, &dir));
                paths.unwrap_or_else(|_| Arc::default())
            }
        };
        let mut docs = Vec::new();
        let mut problems = Vec::new();
        for path in selected.iter() {
            let read = || read_doc_start(&dir, path, self.settings.max_bytes_per_doc);
            match self.texts.doc(&skill.name, path, read) {
                Ok(doc) => docs.push(truncate_doc(&mut budget, path, &doc)),
                Err(error) => {
                    tracing::warn!(skill = %skill.name, doc = %path, %error, "cannot read a document");
                    problems.push(error.to_string());
                }
            }
        }
        (docs, problems)
    }
}

/// Truncates a document to the remaining budget, and subtracts its length from the budget.
fn truncate_doc(budget: &mut usize, path: &RelPath, doc: &CachedDocStart) -> PromptDoc {
    let end = doc.text.floor_char_boundary(*budget);
    *budget -= end;
    PromptDoc {
        path: path.to_string(),
        text: doc.text[..end].to_owned(),
        truncated_from: (doc.is_truncated() || end < doc.text.len()).then_some(doc.size),
    }
}

/// Reads the beginning of a document as text. Invalid UTF-8 is replaced.
fn read_doc_start(dir: &SkillDir, path: &RelPath, limit: usize) -> Result<CachedDocStart, SkillReadError> {
    let mut file = dir.open_file(path)?;
    let size = file.size();
    let mut bytes = Vec::new();
    let read = (&mut file).take(limit as u64).read_to_end(&mut bytes);
    read.map_err(|source| SkillReadError::Io {
        path: path.as_path().to_owned(),
        source,
    })?;
    if size > bytes.len() as u64 {
        bytes.truncate(complete_chars_length(&bytes));
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(CachedDocStart { text, size })
}

/// How many bytes to keep so that truncation does not split a character.
fn complete_chars_length(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // Only an incomplete character at the end is dropped; other invalid bytes are replaced later.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}
