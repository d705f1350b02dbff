//! The environments of a skill, for commands that build them ahead of its runs.

use std::time::Duration;

use skillbox_environment::{Declaration, EnvironmentStoreError, ScriptLanguage, StoredEnvironment};
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::Digest;

use crate::environment::{CommandScript, EnvironmentError};
use crate::{RunError, Runtime};

/// An environment that a run of a skill uses.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SkillEnvironment {
    /// Its digest.
    pub digest: Digest,
    /// Which languages have packages.
    pub kind: &'static str,
    /// The file that declares the packages.
    pub declared_in: String,
    /// The installed packages, each with its version.
    pub packages: Vec<String>,
    /// How long the build took; absent if it was built before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_ms: Option<u64>,
}

impl Runtime {
    /// Builds every environment that runs of the skill can need: that of its files, and those of its scripts.
    pub fn build_environments(
        &self,
        name: &str,
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> Result<Vec<SkillEnvironment>, RunError> {
        let mut built = Vec::new();
        for (declared_in, declaration) in self.declarations(name, cancel)? {
            let (environment, duration) = match self.find_environment(&declaration)? {
                Some(found) => (found, None),
                None => self.build(name, &declaration, cancel, events)?,
            };
            let identity = &environment.identity;
            built.push(SkillEnvironment {
                digest: environment.digest,
                kind: identity.kind(),
                declared_in,
                packages: identity
                    .python
                    .iter()
                    .chain(&identity.node)
                    .map(|package| format!("{} {}", package.name, package.version))
                    .collect(),
                built_ms: duration.map(|duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            });
        }
        Ok(built)
    }

    /// All stored environments.
    pub fn list_environments(&self) -> Result<Vec<StoredEnvironment>, EnvironmentStoreError> {
        self.environment_store().list()
    }

    /// Removes environments that were not used for `max_age`, and the longest unused ones beyond `max_bytes`.
    pub fn collect_environments(
        &self,
        max_age: Duration,
        max_bytes: u64,
    ) -> Result<Vec<StoredEnvironment>, EnvironmentStoreError> {
        self.environment_store().collect(max_age, max_bytes)
    }

    /// The different declarations of a skill, each with the file that it is in.
    fn declarations(&self, name: &str, cancel: &CancelToken) -> Result<Vec<(String, Declaration)>, RunError> {
        let catalog = self.catalog();
        let entry = self.find_skill(&catalog, name, "skill")?;
        let snapshot = self.freezer.freeze(entry, &|| cancel.is_cancelled())?;
        let mut scripts = vec![
            (None, ScriptLanguage::Python),
            (None, ScriptLanguage::Node),
            (None, ScriptLanguage::Unknown),
        ];
        let files = entry
            .open()
            .and_then(|directory| directory.tree_entries())
            .map_err(|source| RunError::Skill {
                skill: entry.name().clone(),
                source,
            })?;
        let python = files.into_iter().map(|file| file.path.to_string());
        scripts.extend(
            python
                .filter(|path| path.ends_with(".py"))
                .map(|path| (Some(path), ScriptLanguage::Python)),
        );
        let mut found: Vec<(String, Declaration)> = Vec::new();
        for (path, language) in scripts {
            let script = CommandScript { path, language };
            let declaration = self.declared_packages(name, &snapshot, &script)?;
            let is_known = found.iter().any(|(_, known)| known.digest() == declaration.digest());
            if !declaration.is_empty() && !is_known {
                found.push((declared_in(&declaration), declaration));
            }
        }
        Ok(found)
    }
}

fn declared_in(declaration: &Declaration) -> String {
    let python = declaration.python.as_ref().map(|python| python.file.clone());
    let node = declaration.node.as_ref().map(|_| "package.json".to_owned());
    let files: Vec<String> = python.into_iter().chain(node).collect();
    files.join(" and ")
}

impl From<EnvironmentStoreError> for RunError {
    fn from(error: EnvironmentStoreError) -> Self {
        EnvironmentError::from(error).into()
    }
}
