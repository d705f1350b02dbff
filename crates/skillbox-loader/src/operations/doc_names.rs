//! A skill's documents by the names that callers use.

use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, nearest};

use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::skill_view::SkillView;
use crate::tools::SkillInput;

impl Engine<'_> {
    /// Lists the documents of a skill.
    pub fn list_docs(&self, input: &SkillInput) -> Result<Answer<Vec<String>>, LoaderError> {
        let skill = self.skill(&input.skill)?;
        let docs = texts(&self.docs_of(skill, &self.open(skill)?)?);
        Ok(Answer {
            text: serde_json::Value::from(docs.clone()).to_string(),
            result: docs,
            delta: Default::default(),
        })
    }

    /// Opens the directory of a skill.
    pub(crate) fn open(&self, skill: &SkillView) -> Result<SkillDir, LoaderError> {
        self.entry(skill)?.open().map_err(|source| unreadable(skill, source))
    }

    /// Documents whose paths a caller can write; JSON has no others.
    pub(crate) fn docs_of(&self, skill: &SkillView, dir: &SkillDir) -> Result<Vec<RelPath>, LoaderError> {
        let mut docs = dir.docs().map_err(|source| unreadable(skill, source))?;
        docs.retain(|doc| doc.to_str().is_some());
        Ok(docs)
    }

    /// The documents that a caller named, each of which must be there.
    pub(crate) fn named_docs(
        &self,
        skill: &SkillView,
        available: &[RelPath],
        named: &[String],
    ) -> Result<Vec<RelPath>, LoaderError> {
        let find = |text: &String| {
            let path = RelPath::parse_typed(text).map_err(|source| LoaderError::BadPath {
                path: text.clone(),
                field: "docs",
                source,
            })?;
            if available.contains(&path) {
                return Ok(path);
            }
            Err(LoaderError::UnknownDoc {
                skill: skill.name.to_string(),
                path: text.clone(),
                nearest: nearest_paths(text, available.iter()),
            })
        };
        named.iter().map(find).collect()
    }
}

/// The three paths most like the one that was asked for.
pub(crate) fn nearest_paths<'p>(wanted: &str, paths: impl Iterator<Item = &'p RelPath>) -> Vec<String> {
    let found = nearest(wanted, paths.filter_map(RelPath::to_str), 3);
    found.into_iter().map(str::to_owned).collect()
}

pub(crate) fn texts(docs: &[RelPath]) -> Vec<String> {
    docs.iter().map(RelPath::to_string).collect()
}

pub(crate) fn unreadable(skill: &SkillView, source: skillbox_repository::SkillReadError) -> LoaderError {
    let (name, path) = (skill.name.to_string(), &*skill.path);
    tracing::error!(skill = %skill.name, path, error = %source, "failed to read the skill at {path}");
    LoaderError::Unreadable {
        name,
        path: path.into(),
        source,
    }
}
