//! The texts of skills that the current turn has read.
//!
//! The cache exists for stability first: a file that changes during a turn is read again only in the next turn, so that
//! the prompt of a turn keeps its bytes. It also saves each prompt of a turn from reading every loaded SKILL.md and
//! document again. The gain has not been measured separately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skillbox_model::{RelPath, SkillName};
use skillbox_repository::{SkillDir, SkillMdText, SkillReadError};

/// Instructions, document lists and documents by skill, each read once per turn.
#[derive(Debug, Default)]
pub struct TurnTextCache(Mutex<HashMap<SkillName, CachedTexts>>);

#[derive(Debug, Default)]
struct CachedTexts {
    instructions: Option<Arc<SkillMdText>>,
    doc_paths: Option<Arc<[RelPath]>>,
    docs: HashMap<RelPath, Arc<CachedDocStart>>,
}

/// The beginning of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CachedDocStart {
    pub(crate) text: String,
    /// Size of the whole document in bytes.
    pub(crate) size: u64,
}

impl CachedDocStart {
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
    ) -> Result<Arc<SkillMdText>, SkillReadError> {
        if let Some(text) = self.lock().get(skill).and_then(|texts| texts.instructions.clone()) {
            return Ok(text);
        }
        let text = Arc::new(open()?.read_skill_md()?);
        self.store_instructions(skill, &text);
        Ok(text)
    }

    /// Stores instructions that the caller has just read.
    pub(crate) fn store_instructions(&self, skill: &SkillName, text: &Arc<SkillMdText>) {
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
        read: impl FnOnce() -> Result<CachedDocStart, SkillReadError>,
    ) -> Result<Arc<CachedDocStart>, SkillReadError> {
        if let Some(start) = self.lock().get(skill).and_then(|texts| texts.docs.get(doc).cloned()) {
            return Ok(start);
        }
        let start = Arc::new(read()?);
        self.lock()
            .entry(skill.clone())
            .or_default()
            .docs
            .insert(doc.clone(), start.clone());
        Ok(start)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SkillName, CachedTexts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
