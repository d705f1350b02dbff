//! Gathers what loaded skills and their documents say.

use std::io::Read;
use std::sync::Arc;

use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, SkillReadError, SkillText};

use crate::dialect::Dialect;
use crate::engine::Engine;
use crate::loader_error::LoaderError;
use crate::prompt::{BodyText, DocBody, shown_directory};
use crate::skill_view::SkillView;
use crate::state::{DocSelection, LoadedSkill};
use crate::steering::with_arguments;
use crate::turn_texts::Excerpt;

impl Engine<'_> {
    /// The words of everything the agent has loaded, in the order of loading.
    pub(crate) fn bodies(&self) -> Vec<BodyText> {
        let loaded = self.state.loaded_views(self.agent);
        loaded.map(|(loaded, skill)| self.body(loaded, skill)).collect()
    }

    fn body(&self, loaded: &LoadedSkill, skill: &SkillView) -> BodyText {
        let text = self.turn_instructions(skill);
        let selection = self.state.docs(self.agent, &skill.name).cloned().unwrap_or_default();
        BodyText {
            name: skill.name.to_string(),
            directory: shown_directory(self.settings, skill).into_owned(),
            text: match text {
                Ok(text) => Ok(self.said(&text, loaded.arguments.as_deref())),
                Err(error) => Err(error.body(self.settings.dialect).message),
            },
            allowed_tools: skill.allowed_tools.iter().map(|tool| tool.to_string()).collect(),
            docs: self.doc_bodies(skill, &selection).0,
        }
    }

    /// What the dialect shows of a SKILL.md: all of it, or what follows the frontmatter.
    pub(crate) fn said(&self, text: &SkillText, arguments: Option<&str>) -> String {
        let shown = match self.settings.dialect {
            Dialect::Deepagents => &text.whole,
            _ => &text.body,
        };
        with_arguments(shown, arguments).into_owned()
    }

    pub(crate) fn turn_instructions(&self, skill: &SkillView) -> Result<Arc<SkillText>, LoaderError> {
        let entry = self.entry(skill)?;
        let text = self.texts.instructions(&skill.name, || entry.open());
        text.map_err(|source| super::doc_names::unreadable(skill, source))
    }

    /// The chosen documents, within the limits, and what could not be shown. A document that cannot be read is
    /// passed over; its skill works without it.
    pub(crate) fn doc_bodies(&self, skill: &SkillView, selection: &DocSelection) -> (Vec<DocBody>, Vec<String>) {
        if selection.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let dir = match self.open(skill) {
            Ok(dir) => dir,
            Err(error) => return (Vec::new(), vec![error.body(self.settings.dialect).message]),
        };
        let chosen: Arc<[RelPath]> = match selection {
            DocSelection::Chosen(docs) => docs.clone().into(),
            DocSelection::All => {
                let names = self.texts.doc_names(&skill.name, || self.docs_of(skill, &dir));
                names.unwrap_or_else(|_| Arc::default())
            }
        };
        let mut docs = Vec::new();
        let mut problems = Vec::new();
        let mut room = self.settings.max_docs_bytes;
        for path in chosen.iter() {
            let read = || excerpt(&dir, path, self.settings.max_doc_bytes);
            match self.texts.doc(&skill.name, path, read) {
                Ok(doc) => docs.push(within(&mut room, path, &doc)),
                Err(error) => {
                    tracing::warn!(skill = %skill.name, doc = %path, %error, "a document cannot be shown");
                    problems.push(error.to_string());
                }
            }
        }
        (docs, problems)
    }
}

fn within(room: &mut usize, path: &RelPath, doc: &Excerpt) -> DocBody {
    let end = doc.text.floor_char_boundary(*room);
    *room -= end;
    DocBody {
        path: path.to_string(),
        text: doc.text[..end].to_owned(),
        cut_from: (doc.is_cut() || end < doc.text.len()).then_some(doc.size),
    }
}

/// The beginning of a document as text; bytes that are none are replaced.
fn excerpt(dir: &SkillDir, path: &RelPath, limit: usize) -> Result<Excerpt, SkillReadError> {
    let mut file = dir.open_file(path)?;
    let size = file.size();
    let mut bytes = Vec::new();
    let read = (&mut file).take(limit as u64).read_to_end(&mut bytes);
    read.map_err(|source| SkillReadError::Io {
        path: path.as_path().to_owned(),
        source,
    })?;
    if size > bytes.len() as u64 {
        bytes.truncate(whole_characters(&bytes));
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Excerpt { text, size })
}

/// How many bytes to keep so that the cut does not split a character.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // Only an end that could have gone on is cut off; other bytes that are no text are replaced later.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}
