//! The texts of skills that the current turn has read.
//!
//! The cache exists for stability first: a file that changes during a turn is read again only in the next turn, so that
//! the prompt of a turn keeps its bytes. It also saves each prompt of a turn from reading every loaded SKILL.md and
//! document again. The gain has not been measured separately.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use skillbox_model::{RelPath, SkillName};
use skillbox_repository::{SkillMdText, SkillReadError};

use crate::state::DocSelection;

/// Instructions, document lists and documents by skill, each read once per turn.
#[derive(Debug, Default)]
pub struct TurnTextCache {
    texts: Mutex<HashMap<SkillName, CachedTexts>>,
    change_count: AtomicU64,
}

/// The texts of a turn in a form that can be stored, for hosts that serve one turn with several processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredTurnTexts(Vec<StoredSkillTexts>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredSkillTexts {
    skill: SkillName,
    /// The whole SKILL.md, and the length of what precedes its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill_md: Option<(String, usize)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doc_paths: Option<Vec<RelPath>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    docs: Vec<(RelPath, CachedDocStart)>,
}

impl StoredTurnTexts {
    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Default)]
struct CachedTexts {
    instructions: Option<Arc<SkillMdText>>,
    doc_paths: Option<Arc<[RelPath]>>,
    docs: HashMap<RelPath, Arc<CachedDocStart>>,
}

/// The beginning of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachedDocStart {
    pub(crate) text: String,
    /// Size of the whole document in bytes.
    pub(crate) size: u64,
}

impl CachedTexts {
    fn byte_count(&self) -> usize {
        let instructions = self.instructions.as_ref().map_or(0, |text| text.whole.len());
        let docs: usize = self.docs.values().map(|doc| doc.text.len()).sum();
        instructions + docs
    }
}

impl CachedDocStart {
    pub(crate) fn is_truncated(&self) -> bool {
        (self.text.len() as u64) < self.size
    }
}

impl TurnTextCache {
    /// Empties the cache at the start of a turn.
    pub fn clear(&self) {
        let mut texts = self.lock();
        if !texts.is_empty() {
            texts.clear();
            self.count_change();
        }
    }

    /// How often the texts changed. A caller that stores them compares it before and after a step.
    pub fn change_count(&self) -> u64 {
        self.change_count.load(Ordering::Relaxed)
    }

    /// The texts, for storing. A skill whose texts would make them larger than `max_bytes` is left out, and read again.
    pub fn export(&self, max_bytes: usize) -> StoredTurnTexts {
        let texts = self.lock();
        let mut skills: Vec<_> = texts.iter().collect();
        skills.sort_unstable_by_key(|(skill, _)| *skill);
        let mut remaining = max_bytes;
        let stored = skills.into_iter().filter_map(|(skill, cached)| {
            remaining = remaining.checked_sub(cached.byte_count())?;
            Some(StoredSkillTexts {
                skill: skill.clone(),
                skill_md: cached.instructions.as_ref().map(|text| {
                    let body_start = text.whole.len().saturating_sub(text.body.len());
                    (text.whole.clone(), body_start)
                }),
                doc_paths: cached.doc_paths.as_ref().map(|paths| paths.to_vec()),
                docs: cached
                    .docs
                    .iter()
                    .map(|(path, doc)| (path.clone(), CachedDocStart::clone(doc)))
                    .collect(),
            })
        });
        StoredTurnTexts(stored.collect())
    }

    /// Adds texts that were stored earlier in the turn.
    pub fn import(&self, stored: StoredTurnTexts) {
        let mut texts = self.lock();
        for stored in stored.0 {
            let cached = texts.entry(stored.skill).or_default();
            if let Some((whole, body_start)) = stored.skill_md {
                let body = whole.get(body_start..).unwrap_or(&whole).to_owned();
                cached.instructions = Some(Arc::new(SkillMdText { whole, body }));
            }
            cached.doc_paths = stored.doc_paths.map(Into::into).or(cached.doc_paths.take());
            let docs = stored.docs.into_iter().map(|(path, doc)| (path, Arc::new(doc)));
            cached.docs.extend(docs);
        }
    }

    /// The instructions of a skill, if the turn has read them.
    pub(crate) fn cached_instructions(&self, skill: &SkillName) -> Option<Arc<SkillMdText>> {
        self.lock().get(skill)?.instructions.clone()
    }

    /// The selected documents of a skill, if the turn has read all of them.
    pub(crate) fn cached_docs(
        &self,
        skill: &SkillName,
        selection: &DocSelection,
    ) -> Option<Vec<(RelPath, Arc<CachedDocStart>)>> {
        let texts = self.lock();
        let cached = texts.get(skill)?;
        let paths: &[RelPath] = match selection {
            DocSelection::All => cached.doc_paths.as_deref()?,
            DocSelection::Chosen(paths) => paths,
        };
        let find = |path: &RelPath| Some((path.clone(), cached.docs.get(path)?.clone()));
        paths.iter().map(find).collect()
    }

    /// Stores instructions that the caller has just read.
    pub(crate) fn store_instructions(&self, skill: &SkillName, text: &Arc<SkillMdText>) {
        let mut texts = self.lock();
        let instructions = &mut texts.entry(skill.clone()).or_default().instructions;
        if instructions.as_ref() != Some(text) {
            *instructions = Some(text.clone());
            self.count_change();
        }
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
        self.count_change();
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
        self.count_change();
        Ok(start)
    }

    fn count_change(&self) {
        self.change_count.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SkillName, CachedTexts>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SkillName {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn stored_texts_are_restored() {
        let cache = TurnTextCache::default();
        let text = Arc::new(SkillMdText {
            whole: "---\nname: a\n---\nBody.\n".to_owned(),
            body: "Body.\n".to_owned(),
        });
        cache.store_instructions(&name("a"), &text);
        let doc: RelPath = RelPath::parse_user_input("x.md").unwrap();
        let start = CachedDocStart {
            text: "Words.".to_owned(),
            size: 60,
        };
        cache.doc(&name("a"), &doc, || Ok(start.clone())).unwrap();
        let count = cache.change_count();
        cache.store_instructions(&name("a"), &text);
        assert_eq!(cache.change_count(), count, "the same text is no change");

        let stored = serde_json::to_string(&cache.export(1000)).unwrap();
        let restored = TurnTextCache::default();
        restored.import(serde_json::from_str(&stored).unwrap());
        assert_eq!(restored.cached_instructions(&name("a")), Some(text));
        let chosen = DocSelection::chosen([doc.clone()]);
        let docs = restored.cached_docs(&name("a"), &chosen).unwrap();
        assert_eq!((&docs[0].0, &*docs[0].1), (&doc, &start));
        assert_eq!(
            restored.cached_docs(&name("a"), &DocSelection::All),
            None,
            "the list was not read"
        );
        assert!(cache.export(10).is_empty(), "texts over the limit are left out");
        cache.clear();
        assert!(cache.export(1000).is_empty() && cache.change_count() > count);
    }
}
