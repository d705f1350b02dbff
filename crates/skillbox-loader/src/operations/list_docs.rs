//! Lists the documents of a skill, and finds documents by path.

use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, nearest_names};

use crate::call_context::{CallContext, OperationOutcome};
use crate::loader_error::LoaderError;
use crate::skill_view::SkillView;
use crate::tool_interface::SkillInput;

impl CallContext<'_> {
    /// Lists the documents of a skill.
    pub fn list_docs(&self, input: &SkillInput) -> Result<OperationOutcome<Vec<String>>, LoaderError> {
        let skill = self.find_skill(&input.skill)?;
        let docs = path_strings(&self.doc_paths(skill, &self.open_dir(skill)?)?);
        Ok(OperationOutcome {
            text: serde_json::Value::from(docs.clone()).to_string(),
            result: docs,
            delta: Default::default(),
        })
    }

    /// Opens the directory of a skill.
    pub(crate) fn open_dir(&self, skill: &SkillView) -> Result<SkillDir, LoaderError> {
        self.catalog_entry(skill)?
            .open()
            .map_err(|source| unreadable_skill(skill, source))
    }

    /// The paths of the documents, without those that are not UTF-8 and so cannot be written in JSON.
    pub(crate) fn doc_paths(&self, skill: &SkillView, dir: &SkillDir) -> Result<Vec<RelPath>, LoaderError> {
        let mut docs = dir.docs().map_err(|source| unreadable_skill(skill, source))?;
        docs.retain(|doc| doc.to_str().is_some());
        Ok(docs)
    }

    /// Finds the documents that a caller names; each must exist.
    pub(crate) fn find_docs(
        &self,
        skill: &SkillView,
        available: &[RelPath],
        named: &[String],
    ) -> Result<Vec<RelPath>, LoaderError> {
        let find = |text: &String| {
            let path = RelPath::parse_user_input(text).map_err(|source| LoaderError::InvalidPath {
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
                suggestions: similar_paths(text, available.iter()),
            })
        };
        named.iter().map(find).collect()
    }
}

/// The three paths most similar to the requested one.
pub(crate) fn similar_paths<'p>(wanted: &str, paths: impl Iterator<Item = &'p RelPath>) -> Vec<String> {
    let found = nearest_names(wanted, paths.filter_map(RelPath::to_str), 3);
    found.into_iter().map(str::to_owned).collect()
}

pub(crate) fn path_strings(docs: &[RelPath]) -> Vec<String> {
    docs.iter().map(RelPath::to_string).collect()
}

/// Logs and builds the error for a skill that cannot be read.
pub(crate) fn unreadable_skill(skill: &SkillView, source: skillbox_repository::SkillReadError) -> LoaderError {
    let (name, path) = (skill.name.to_string(), &*skill.path);
    tracing::error!(skill = %skill.name, path, error = %source, "failed to read the skill at {path}");
    LoaderError::Unreadable {
        name,
        path: path.into(),
        source,
    }
}
