//! Loads a skill: its instructions, its chosen documents, and the delta that remembers it.

use std::collections::BTreeMap;
use std::sync::Arc;

use skillbox_model::{RelPath, SkillName};
use skillbox_repository::{ResourceKind, SkillDir};

use super::doc_names::unreadable;
use super::load_text::{already_loaded_text, load_text};
use crate::delta::{StateDelta, StateOperation};
use crate::dialect::Dialect;
use crate::engine::{Answer, Caller, Engine};
use crate::loader_error::LoaderError;
use crate::prompt::{DocBody, resource_summary, shown_directory};
use crate::settings::AtLimit;
use crate::skill_view::SkillView;
use crate::state::{DocSelection, ResourceType, ResourceView};
use crate::steering::{FiredHook, Moment, fire};
use crate::tools::{DocText, LoadInput, LoadResult, Tool};

impl Engine<'_> {
    /// Loads a skill. The checks come in a fixed order: unknown, disabled, manual only, loaded already, over the
    /// limit; then the file is read, held to its size and to UTF-8. Only a success has a delta.
    pub fn load(&self, input: &LoadInput) -> Result<Answer<LoadResult>, LoaderError> {
        let skill = self.skill(&input.skill)?;
        let already_loaded = self.state.is_loaded(self.agent, &skill.name);
        if skill.is_manual_only() && self.caller == Caller::Model && !already_loaded {
            return Err(LoaderError::ManualOnly(input.skill.clone()));
        }
        let evicted = if already_loaded { None } else { self.room_for(skill)? };
        let mut result = self.bare_result(skill, already_loaded);
        if already_loaded && self.settings.dialect == Dialect::Deepagents {
            return Ok(Answer {
                text: already_loaded_text(skill),
                result,
                delta: StateDelta::default(),
            });
        }
        let dir = self.open(skill)?;
        let instructions = if already_loaded {
            self.turn_instructions(skill)?
        } else {
            Arc::new(dir.instructions().map_err(|source| unreadable(skill, source))?)
        };
        let selection = self.selection(skill, &dir, input, &mut result)?;
        let resources = self.resources_of(skill, &dir, already_loaded, &mut result.warnings);
        // From here on nothing fails.
        self.texts.keep_instructions(&skill.name, &instructions);
        let arguments = input
            .arguments
            .as_deref()
            .or_else(|| self.earlier_arguments(&skill.name));
        let said = self.said(&instructions, arguments);
        let effective = selection
            .clone()
            .or_else(|| self.state.docs(self.agent, &skill.name).cloned());
        let (docs, problems) = self.doc_bodies(skill, &effective.unwrap_or_default());
        result.warnings.extend(problems);
        result.docs = docs.iter().map(|doc| self.doc_text(doc)).collect();
        result.resource_summary = resource_summary(&resources);
        result.resources = by_kind(&resources);
        result.evicted = evicted;
        let text = load_text(self.settings, skill, &said, &docs, &resources, already_loaded);
        if self.settings.delivery().in_result() {
            result.instructions = Some(said);
        }
        let mut delta = self.load_delta(skill, input, &result, selection, resources);
        result.hooks = fire_on_load(self, skill, &mut delta);
        tracing::info!(
            skill = %skill.name,
            resources = result.resources.values().map(Vec::len).sum::<usize>(),
            already_loaded,
            "skill loaded"
        );
        Ok(Answer { result, text, delta })
    }

    /// The skill that has to make room, if one has to; a refusal where none may.
    fn room_for(&self, skill: &SkillView) -> Result<Option<SkillName>, LoaderError> {
        let limit = self.settings.max_loaded;
        if self.state.loaded(self.agent).count() < limit {
            return Ok(None);
        }
        let least_recent = self.state.least_recently_used(self.agent);
        match (self.settings.at_limit, least_recent) {
            (AtLimit::EvictLeastRecent, Some(least_recent)) => Ok(Some(least_recent.clone())),
            _ => {
                tracing::warn!(limit, skill = %skill.name, "skill loading limit reached");
                Err(LoaderError::LoadLimit {
                    name: skill.name.to_string(),
                    limit,
                    loaded: self.loaded_names(),
                })
            }
        }
    }

    fn bare_result(&self, skill: &SkillView, already_loaded: bool) -> LoadResult {
        let steering = skill.steering.as_deref();
        let text = |text: Option<&Box<str>>| text.map(|text| text.to_string());
        LoadResult {
            skill: skill.name.clone(),
            already_loaded,
            mode: self.settings.load_mode,
            directory: shown_directory(self.settings, skill).into_owned(),
            instructions: None,
            docs: Vec::new(),
            docs_available: 0,
            resources: BTreeMap::new(),
            resource_summary: String::new(),
            allowed_tools: skill.allowed_tools.iter().map(|tool| tool.to_string()).collect(),
            evicted: None,
            model: text(steering.and_then(|steering| steering.model.as_ref())),
            context: text(steering.and_then(|steering| steering.context.as_ref())),
            hooks: Vec::new(),
            warnings: steering
                .map(|steering| steering.hooks().problems.clone())
                .unwrap_or_default(),
        }
    }

    /// The selection that the call makes; none where it says nothing about documents.
    fn selection(
        &self,
        skill: &SkillView,
        dir: &SkillDir,
        input: &LoadInput,
        result: &mut LoadResult,
    ) -> Result<Option<DocSelection>, LoaderError> {
        let all = input.include_all_docs == Some(true);
        let named = input.docs.as_deref().filter(|_| !all);
        // A dialect without documents is not charged for looking through the whole skill.
        if named.is_none() && self.settings.tool_name(Tool::ListDocs).is_none() {
            return Ok(all.then_some(DocSelection::All));
        }
        let available: Vec<RelPath> = match self.docs_of(skill, dir) {
            Ok(available) => available,
            Err(error) if named.is_some() => return Err(error),
            Err(error) => {
                result.warnings.push(error.body(self.settings.dialect).message);
                Vec::new()
            }
        };
        result.docs_available = available.len();
        match named {
            Some(named) => Ok(Some(DocSelection::chosen(self.named_docs(skill, &available, named)?))),
            None => Ok(all.then_some(DocSelection::All)),
        }
    }

    /// From the state while the skill is loaded; a failing look leaves the skill without resources.
    fn resources_of(
        &self,
        skill: &SkillView,
        dir: &SkillDir,
        already_loaded: bool,
        warnings: &mut Vec<String>,
    ) -> Vec<ResourceView> {
        if let Some(known) = self.state.resources(&skill.name).filter(|_| already_loaded) {
            return known.to_vec();
        }
        scan_resources(dir).unwrap_or_else(|error| {
            tracing::warn!(skill = %skill.name, %error, "failed to list resources");
            warnings.push(format!("the resources cannot be listed: {error}"));
            Vec::new()
        })
    }

    fn earlier_arguments(&self, skill: &SkillName) -> Option<&str> {
        let mut loaded = self.state.loaded(self.agent);
        loaded
            .find(|loaded| loaded.skill == *skill)
            .and_then(|loaded| loaded.arguments.as_deref())
    }

    fn doc_text(&self, doc: &DocBody) -> DocText {
        DocText {
            path: doc.path.clone(),
            content: self.settings.delivery().in_result().then(|| doc.text.clone()),
            truncated: doc.cut_from.is_some(),
        }
    }

    fn load_delta(
        &self,
        skill: &SkillView,
        input: &LoadInput,
        result: &LoadResult,
        selection: Option<DocSelection>,
        resources: Vec<ResourceView>,
    ) -> StateDelta {
        let agent = || self.agent.clone();
        let mut delta = StateDelta::default();
        if let Some(evicted) = result.evicted.clone() {
            delta.push(StateOperation::Unload {
                agent: agent(),
                skill: evicted,
            });
        }
        delta.push(StateOperation::Load {
            agent: agent(),
            skill: skill.name.clone(),
            mode: self.settings.load_mode,
            arguments: input.arguments.as_deref().map(Box::from),
        });
        if let Some(docs) = selection {
            delta.push(StateOperation::SelectDocs {
                agent: agent(),
                skill: skill.name.clone(),
                docs,
            });
        }
        if self.state.resources(&skill.name) != Some(&resources) {
            delta.push(StateOperation::Resources {
                skill: skill.name.clone(),
                resources,
            });
        }
        delta
    }
}

/// A skill that is loaded already has had its start.
fn fire_on_load(engine: &Engine<'_>, skill: &SkillView, delta: &mut StateDelta) -> Vec<FiredHook> {
    fire(engine.state, engine.agent, skill, Moment::session_start(), delta)
}

/// The resources of a skill, as the state keeps them.
pub(crate) fn scan_resources(dir: &SkillDir) -> Result<Vec<ResourceView>, skillbox_repository::SkillReadError> {
    let resources = dir
        .resources()?
        .into_iter()
        .filter(|resource| resource.path.to_str().is_some());
    Ok(resources
        .map(|resource| ResourceView {
            path: resource.path,
            kind: match resource.kind {
                ResourceKind::Script => ResourceType::Script,
                ResourceKind::Reference => ResourceType::Reference,
                ResourceKind::Asset => ResourceType::Asset,
                ResourceKind::Other => ResourceType::Other,
            },
        })
        .collect())
}

fn by_kind(resources: &[ResourceView]) -> BTreeMap<ResourceType, Vec<String>> {
    let mut kinds: BTreeMap<ResourceType, Vec<String>> = BTreeMap::new();
    for resource in resources {
        kinds.entry(resource.kind).or_default().push(resource.path.to_string());
    }
    kinds
}
