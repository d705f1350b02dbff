//! Loads a skill: its instructions, its selected documents, and the delta that records it.

use std::collections::BTreeMap;
use std::sync::Arc;

use skillbox_model::{RelPath, SkillName};
use skillbox_repository::SkillDir;

use super::list_docs::unreadable_skill;
use super::load_text::{render_already_loaded_text, render_loaded_text};
use super::scan_resources::scan_resources;
use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::{StateDelta, StateOperation};
use crate::dialect::Dialect;
use crate::fire_hooks::{HookTrigger, fire_hooks};
use crate::loader_error::LoaderError;
use crate::prompt::{PromptDoc, resource_summary, shown_directory};
use crate::settings::AtLimit;
use crate::skill_view::SkillView;
use crate::state::{DocSelection, ResourceType, ResourceView};
use crate::tool::Tool;
use crate::tool_interface::{LoadInput, LoadResult, ResultDoc};

impl CallContext<'_> {
    /// Loads a skill. The checks have a fixed order: unknown, disabled, caller, already loaded, over the limit.
    /// Then the file is read and its size and encoding are checked. Only a successful call has a delta.
    pub fn load(&self, input: &LoadInput) -> Result<OperationOutcome<LoadResult>, LoaderError> {
        let skill = self.find_skill(&input.skill)?;
        let already_loaded = self.state.is_loaded(self.agent, &skill.name);
        if !already_loaded {
            self.check_caller(skill)?;
        }
        let evicted = if already_loaded {
            None
        } else {
            self.skill_to_evict(skill)?
        };
        let mut result = self.initial_result(skill, already_loaded);
        if already_loaded && self.settings.dialect == Dialect::Deepagents {
            return Ok(OperationOutcome {
                text: render_already_loaded_text(skill),
                result,
                delta: StateDelta::default(),
            });
        }
        let dir = self.open_dir(skill).inspect_err(|_| log_read_failure(skill))?;
        let instructions = if already_loaded {
            self.read_instructions(skill)?
        } else {
            let text = dir.read_skill_md().map_err(|source| unreadable_skill(skill, source));
            Arc::new(text.inspect_err(|_| log_read_failure(skill))?)
        };
        let selection = self.requested_selection(skill, &dir, input, &mut result)?;
        let resources = self.find_resources(skill, &dir, already_loaded, &mut result.warnings);
        // Nothing can fail from here on.
        self.texts.store_instructions(&skill.name, &instructions);
        let arguments = input
            .arguments
            .as_deref()
            .or_else(|| self.previous_arguments(&skill.name));
        let shown = self.shown_instructions(&instructions, arguments);
        let shown_docs = selection
            .clone()
            .or_else(|| self.state.docs(self.agent, &skill.name).cloned());
        let (docs, problems) = self.read_docs(skill, &shown_docs.unwrap_or_default());
        result.warnings.extend(problems);
        result.docs = docs.iter().map(|doc| self.result_doc(doc)).collect();
        result.resource_summary = resource_summary(&resources);
        result.resources = group_by_type(&resources);
        result.evicted = evicted;
        let text = render_loaded_text(self.settings, skill, &shown, &docs, &resources, already_loaded);
        if self.settings.delivery().in_result() {
            result.instructions = Some(shown);
        }
        let mut delta = self.load_delta(skill, input, &result, selection, resources);
        // The start hook of a skill that is already loaded has fired before and does not fire again.
        result.hooks = fire_hooks(self.state, self.agent, skill, HookTrigger::session_start(), &mut delta);
        let (name, resources) = (&skill.name, result.resources.values().map(Vec::len).sum::<usize>());
        tracing::info!(
            skill = %name,
            resources,
            already_loaded,
            "Skill '{name}' loaded ({resources} resources discovered)"
        );
        Ok(OperationOutcome { result, text, delta })
    }

    /// Finds the skill to unload at the load limit, or refuses the call if the settings say so.
    fn skill_to_evict(&self, skill: &SkillView) -> Result<Option<SkillName>, LoaderError> {
        let count = self.state.loaded(self.agent).count();
        let Some(limit) = self.settings.load_limit().filter(|limit| count >= *limit) else {
            return Ok(None);
        };
        let least_recent = self.state.least_recently_used(self.agent);
        match (self.settings.at_limit, least_recent) {
            (AtLimit::EvictLeastRecent, Some(least_recent)) => Ok(Some(least_recent.clone())),
            _ => {
                let loaded = self.state.loaded(self.agent).count();
                tracing::warn!(limit, skill = %skill.name, "Skill loading limit reached ({loaded}/{limit})");
                Err(LoaderError::LoadLimit {
                    name: skill.name.to_string(),
                    limit,
                    loaded: self.loaded_names(),
                })
            }
        }
    }

    fn initial_result(&self, skill: &SkillView, already_loaded: bool) -> LoadResult {
        let invocation = skill.invocation.as_deref();
        let owned = |text: Option<&Box<str>>| text.map(|text| text.to_string());
        LoadResult {
            skill: skill.name.clone(),
            already_loaded,
            mode: self.settings.load_mode(),
            directory: shown_directory(self.settings, skill).into_owned(),
            instructions: None,
            docs: Vec::new(),
            doc_count: 0,
            resources: BTreeMap::new(),
            resource_summary: String::new(),
            allowed_tools: skill.allowed_tools.iter().map(|tool| tool.to_string()).collect(),
            evicted: None,
            model: owned(invocation.and_then(|invocation| invocation.model.as_ref())),
            context: owned(invocation.and_then(|invocation| invocation.context.as_ref())),
            agent: owned(invocation.and_then(|invocation| invocation.agent.as_ref())),
            fork: None,
            hooks: Vec::new(),
            warnings: invocation
                .map(|invocation| invocation.hooks().problems.clone())
                .unwrap_or_default(),
        }
    }

    /// The document selection of the call; `None` if the call does not mention documents.
    fn requested_selection(
        &self,
        skill: &SkillView,
        dir: &SkillDir,
        input: &LoadInput,
        result: &mut LoadResult,
    ) -> Result<Option<DocSelection>, LoaderError> {
        let all = input.include_all_docs == Some(true);
        let named = input.docs.as_deref().filter(|_| !all);
        // A dialect without documents does not need the scan of the whole skill.
        if named.is_none() && self.settings.tool_name(Tool::ListDocs).is_none() {
            return Ok(all.then_some(DocSelection::All));
        }
        let available: Vec<RelPath> = match self.doc_paths(skill, dir) {
            Ok(available) => available,
            Err(error) if named.is_some() => return Err(error),
            Err(error) => {
                result.warnings.push(error.to_error_body(self.settings.dialect).message);
                Vec::new()
            }
        };
        result.doc_count = available.len();
        match named {
            Some(named) => Ok(Some(DocSelection::chosen(self.find_docs(skill, &available, named)?))),
            None => Ok(all.then_some(DocSelection::All)),
        }
    }

    /// The resources from the state if the skill is loaded, otherwise from a scan. A directory that cannot be listed is a
    /// warning, and its files are missing.
    fn find_resources(
        &self,
        skill: &SkillView,
        dir: &SkillDir,
        already_loaded: bool,
        warnings: &mut Vec<String>,
    ) -> Vec<ResourceView> {
        if let Some(known) = self.state.resources(&skill.name).filter(|_| already_loaded) {
            return known.to_vec();
        }
        let (resources, problems) = scan_resources(skill, dir);
        warnings.extend(problems);
        resources
    }

    fn previous_arguments(&self, skill: &SkillName) -> Option<&str> {
        let mut loaded = self.state.loaded(self.agent);
        loaded
            .find(|loaded| loaded.skill == *skill)
            .and_then(|loaded| loaded.arguments.as_deref())
    }

    pub(super) fn result_doc(&self, doc: &PromptDoc) -> ResultDoc {
        ResultDoc {
            path: doc.path.clone(),
            content: self.settings.delivery().in_result().then(|| doc.text.clone()),
            truncated: doc.truncated_from.is_some(),
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
            mode: self.settings.load_mode(),
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
            delta.push(StateOperation::SetResources {
                skill: skill.name.clone(),
                resources,
            });
        }
        delta
    }
}

fn log_read_failure(skill: &SkillView) {
    tracing::error!(skill = %skill.name, "Failed to read SKILL.md at {}", skill.path);
}

fn group_by_type(resources: &[ResourceView]) -> BTreeMap<ResourceType, Vec<String>> {
    let mut groups: BTreeMap<ResourceType, Vec<String>> = BTreeMap::new();
    for resource in resources {
        groups.entry(resource.kind).or_default().push(resource.path.to_string());
    }
    groups
}
