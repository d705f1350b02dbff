//! The words of skills as one turn reads them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skillbox_model::{RelPath, SkillName};
use skillbox_repository::{SkillDir, SkillReadError, SkillText};

/// Texts that were read in this turn. A file that changes meanwhile is read again in the next one, so that the
/// prompt of a turn stays as it is.
#[derive(Debug, Default)]
pub struct TurnTexts(Mutex<HashMap<SkillName, Texts>>);

#[derive(Debug, Default)]
struct Texts {
    instructions: Option<Arc<SkillText>>,
    doc_names: Option<Arc<[RelPath]>>,
    docs: HashMap<RelPath, Arc<Excerpt>>,
}

/// The beginning of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// Size of the whole document.
    pub(crate) size: u64,
}

impl Excerpt {
    pub(crate) fn is_cut(&self) -> bool {
        (self.text.len() as u64) < self.size
    }
}

impl TurnTexts {
    /// Forgets everything: a new turn begins.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The skill's instructions, read on first use.
    pub(crate) fn instructions(
        &self,
        skill: &SkillName,
        open: impl FnOnce() -> Result<SkillDir, SkillReadError>,
    ) -> Result<Arc<SkillText>, SkillReadError> {
        if let Some(text) = self.lock().get(skill).and_then(|texts| texts.instructions.clone()) {
            return Ok(text);
        }
        let text = Arc::new(open()?.instructions()?);
        self.keep_instructions(skill, &text);
        Ok(text)
    }

    /// Keeps instructions that were just read.
    pub(crate) fn keep_instructions(&self, skill: &SkillName, text: &Arc<SkillText>) {
        self.lock().entry(skill.clone()).or_default().instructions = Some(text.clone());
    }

    /// The names of the skill's documents, listed on first use.
    pub(crate) fn doc_names<E>(
        &self,
        skill: &SkillName,
        list: impl FnOnce() -> Result<Vec<RelPath>, E>,
    ) -> Result<Arc<[RelPath]>, E> {
        if let Some(names) = self.lock().get(skill).and_then(|texts| texts.doc_names.clone()) {
            return Ok(names);
        }
        let names: Arc<[RelPath]> = list()?.into();
        self.lock().entry(skill.clone()).or_default().doc_names = Some(names.clone());
        Ok(names)
    }

    /// The beginning of a document, read on first use.
    pub(crate) fn doc(
        &self,
        skill: &SkillName,
        doc: &RelPath,
        read: impl FnOnce() -> Result<Excerpt, SkillReadError>,
    ) -> Result<Arc<Excerpt>, SkillReadError> {
        if let Some(text) = self.lock().get(skill).and_then(|texts| texts.docs.get(doc).cloned()) {
            return Ok(text);
        }
        let text = Arc::new(read()?);
        self.lock()
            .entry(skill.clone())
            .or_default()
            .docs
            .insert(doc.clone(), text.clone());
        Ok(text)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SkillName, Texts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
