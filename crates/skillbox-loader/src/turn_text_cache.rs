//! The texts of skills that the current turn has read.
//!
//! The cache exists for stability first: a file that changes during a turn is read again only in the next turn, so that
//! the prompt of a turn keeps its bytes. It also saves each prompt of a turn from reading every loaded SKILL.md and
//! document again. Gain: not measured yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skillbox_model::{RelPath, SkillName};
use skillbox_repository::{SkillDir, SkillReadError, SkillText};

/// Instructions, document lists and documents by skill, each read once per turn.
#[derive(Debug, Default)]
pub struct TurnTextCache(Mutex<HashMap<SkillName, CachedTexts>>);

#[derive(Debug, Default)]
struct CachedTexts {
    instructions: Option<Arc<SkillText>>,
    doc_paths: Option<Arc<[RelPath]>>,
    docs: HashMap<RelPath, Arc<DocExcerpt>>,
}

/// The beginning of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DocExcerpt {
    pub(crate) text: String,
    /// Size of the whole document in bytes.
    pub(crate) size: u64,
}

impl DocExcerpt {
    pub(crate) fn is_truncated(&self) -> bool {
        (self.text.len() as u64) < self.size
    }
}

impl TurnTextCache {
    /// Empties the cache at the start of a turn.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Returns the instructions of a skill, and reads them on first use.
    pub(crate) fn instructions(
        &self,
        skill: &SkillName,
        open: impl FnOnce() -> Result<SkillDir, SkillReadError>,
    ) -> Result<Arc<SkillText>, SkillReadError> {
        if let Some(text) = self.lock().get(skill).and_then(|texts| texts.instructions.clone()) {
            return Ok(text);
        }
        let text = Arc::new(open()?.instructions()?);
        self.store_instructions(skill, &text);
        Ok(text)
    }

    /// Stores instructions that the caller has just read.
    pub(crate) fn store_instructions(&self, skill: &SkillName, text: &Arc<SkillText>) {
        self.lock().entry(skill.clone()).or_default().instructions = Some(text.clone());
    }

    /// Returns the paths of a skill's documents, and lists them on first use.
    pub(crate) fn doc_paths<E>(
        &self,
        skill: &SkillName,
        list: impl FnOnce() -> Result<Vec<RelPath>, E>,
    ) -> Result<Arc<[RelPath]>, E> {
        if let Some(paths) = self.lock().get(skill).and_then(|texts| texts.doc_paths.clone()) {
            return Ok(paths);
        }
        let paths: Arc<[RelPath]> = list()?.into();
        self.lock().entry(skill.clone()).or_default().doc_paths = Some(paths.clone());
        Ok(paths)
    }

    /// Returns the beginning of a document, and reads it on first use.
    pub(crate) fn doc(
        &self,
        skill: &SkillName,
        doc: &RelPath,
        read: impl FnOnce() -> Result<DocExcerpt, SkillReadError>,
    ) -> Result<Arc<DocExcerpt>, SkillReadError> {
        if let Some(excerpt) = self.lock().get(skill).and_then(|texts| texts.docs.get(doc).cloned()) {
            return Ok(excerpt);
        }
        let excerpt = Arc::new(read()?);
        self.lock()
            .entry(skill.clone())
            .or_default()
            .docs
            .insert(doc.clone(), excerpt.clone());
        Ok(excerpt)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SkillName, CachedTexts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
