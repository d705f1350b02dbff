//! A session: one state, and the methods that a host calls on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use skillbox_repository::Catalog;

use crate::agent::{AgentName, AgentSpec};
use crate::call_context::{CallContext, Caller, OperationOutcome};
use crate::catalog_snapshot_cache::CatalogSnapshotCache;
use crate::delta::{StateDelta, StateOperation};
use crate::fire_hooks::{FiredHooks, fire_event};
use crate::hooks::HookEvent;
use crate::loader_error::LoaderError;
use crate::policy::{DeclaredTools, PolicyKind, Verdict, check};
use crate::prompt::{PromptInput, render_section};
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::{LoadMode, SkillsState};
use crate::tool::Tool;
use crate::tool_call::ToolCallReply;
use crate::tool_interface::{RegisterToolsInput, RegisterToolsResult, ToolDefinition, VisibleSkills, define_tools};
use crate::turn_start::{TurnStartEffects, compute_skills_update};
use crate::turn_text_cache::TurnTextCache;

/// One session: its state, and the settings that decide how skills are presented.
///
/// Every method reads and changes the state under one lock, so that parallel calls lose nothing and the limit on loaded
/// skills holds. A method also returns what it changed, for stores and event streams.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    snapshots: Arc<CatalogSnapshotCache>,
    state: Mutex<SkillsState>,
    texts: TurnTextCache,
}

/// A section for the system prompt of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptSection {
    /// The text of the section.
    pub text: String,
    /// The change of the state: skills and notes that only one prompt shows are removed.
    pub delta: StateDelta,
    /// The model that the loaded skills ask for; the host decides.
    pub model: Option<String>,
}

impl PromptSection {
    /// Returns the system prompt with the section appended.
    pub fn appended_to(&self, system_prompt: &str) -> String {
        let gap = if system_prompt.is_empty() { "" } else { "\n\n" };
        format!("{system_prompt}{gap}{}", self.text)
    }
}

/// Whether the conversation still contains the results of earlier tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryCompleteness {
    /// The conversation contains all of them.
    #[default]
    Complete,
    /// The conversation was trimmed or summarised: the prompt repeats texts that only results contained.
    Trimmed,
}

impl Session {
    /// Creates a session with an empty state.
    pub fn new(settings: Settings, snapshots: Arc<CatalogSnapshotCache>) -> Self {
        Self::resume(settings, snapshots, SkillsState::default())
    }

    /// Creates a session with a stored state.
    pub fn resume(settings: Settings, snapshots: Arc<CatalogSnapshotCache>, state: SkillsState) -> Self {
        Self {
            settings,
            snapshots,
            state: Mutex::new(state),
            texts: TurnTextCache::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns a copy of the state.
    pub fn state(&self) -> SkillsState {
        self.lock().clone()
    }

    /// The texts that the current turn has read.
    pub fn texts(&self) -> &TurnTextCache {
        &self.texts
    }

    /// Replaces the state with a stored one.
    pub fn replace_state(&self, state: SkillsState) {
        *self.lock() = state;
    }

    /// Applies a delta that was computed elsewhere.
    pub fn apply(&self, delta: &StateDelta) {
        self.lock().apply(delta);
    }

    /// Updates the state with changes on disk without starting a turn, for hosts without turns. Loaded skills stay
    /// loaded, and their texts are read again. Returns `None` if no skill was added, changed or removed.
    pub fn refresh(&self, catalog: &Catalog) -> Option<StateDelta> {
        let newer = self.snapshots.snapshot(catalog);
        let mut state = self.lock();
        self.texts.clear();
        let delta = StateDelta::from(compute_skills_update(&state, &newer)?);
        state.apply(&delta);
        Some(delta)
    }

    /// Starts an agent's turn. Returns `None` if nothing changes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// let session = Session::new(settings, Arc::new(CatalogSnapshotCache::default()));
    /// let turn = session.before_agent(&catalog, &AgentSpec::main());
    /// assert!(turn.is_some(), "the first turn discovers the skills");
    /// let again = session.before_agent(&catalog, &AgentSpec::main());
    /// assert!(again.is_none(), "a second start without changes on disk changes nothing");
    /// ```
    pub fn before_agent(&self, catalog: &Catalog, spec: &AgentSpec) -> Option<TurnStartEffects> {
        let newer = self.snapshots.snapshot(catalog);
        let mut state = self.lock();
        if spec.parent.is_none() {
            self.texts.clear();
        }
        let turn = self
            .call_context(catalog, &state, &spec.agent, Caller::Model)
            .compute_turn_start(spec, &newer);
        state.apply(&turn.delta);
        (turn != TurnStartEffects::default()).then_some(turn)
    }

    /// Renders the section on skills for the system prompt of the next model call. Returns `None` if there is no section.
    ///
    /// The host adds the section to its request, for example with [`PromptSection::appended_to`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// # let session = Session::new(settings, Arc::new(CatalogSnapshotCache::default()));
    /// # session.before_agent(&catalog, &AgentSpec::main());
    /// # let agent = AgentName::default();
    /// let section = session.modify_request(&catalog, &agent, HistoryCompleteness::Complete, &[]).unwrap();
    /// assert!(section.text.contains("- csv-report: "));
    /// let prompt = section.appended_to("You are a careful analyst.");
    /// assert!(prompt.starts_with("You are a careful analyst.\n\n## Skills"));
    /// ```
    pub fn modify_request(
        &self,
        catalog: &Catalog,
        agent: &AgentName,
        history: HistoryCompleteness,
        warnings: &[String],
    ) -> Option<PromptSection> {
        let mut state = self.lock();
        let context = self.call_context(catalog, &state, agent, Caller::Model);
        let in_prompt = self.settings.delivery().in_prompt() || history == HistoryCompleteness::Trimmed;
        let loaded_texts = if in_prompt {
            context.read_loaded_skills()
        } else {
            Vec::new()
        };
        let text = render_section(&PromptInput {
            settings: &self.settings,
            state: &state,
            agent,
            loaded_texts: &loaded_texts,
            warnings,
        })?;
        let model = state.requested_model(agent).map(str::to_owned);
        let delta = discard_shown_once(&state, agent);
        state.apply(&delta);
        Some(PromptSection { text, delta, model })
    }

    /// Checks whether the policy allows a tool call, and returns the hooks to run before it. Does not make the call.
    ///
    /// The tool may be one of this crate's or one of the host's.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// settings.policy = PolicyKind::Strict;
    /// # let session = Session::new(settings, Arc::new(CatalogSnapshotCache::default()));
    /// # session.before_agent(&catalog, &AgentSpec::main());
    /// # let agent = AgentName::default();
    /// let arguments = json!({"command": "curl example.com"});
    /// assert!(session.wrap_tool_call(&agent, "Bash", &arguments).is_ok(), "no skill is loaded yet");
    /// session.call(&catalog, &agent, Caller::Model, "skill_load", &json!({"skill": "csv-report"}))?;
    /// let blocked = session.wrap_tool_call(&agent, "WebFetch", &json!({})).unwrap_err();
    /// assert_eq!(blocked.to_error_body(Dialect::Skillbox).code.as_str(), "tool_not_allowed");
    /// # Ok::<(), LoaderError>(())
    /// ```
    pub fn wrap_tool_call(&self, agent: &AgentName, tool: &str, arguments: &Value) -> Result<FiredHooks, LoaderError> {
        let mut state = self.lock();
        let skills = loaded_skills(&state, agent);
        self.check_policy(&skills, tool, arguments)?;
        // Hooks do not fire for a call that unloads a skill: a skill's hook could block its own removal forever.
        let removes_skill = matches!(
            self.settings.dialect.find_tool(tool),
            Some(Tool::Unload | Tool::Disable)
        );
        let hooked_skills: &[_] = if removes_skill { &[] } else { &skills };
        let input = json!({"tool_name": tool});
        let fired = fire_event(&state, agent, hooked_skills, HookEvent::PreToolUse, &input);
        state.apply(&fired.delta);
        Ok(fired)
    }

    /// Returns the hooks of the agent's loaded skills to run for an event. Matchers are compared with a field of the
    /// input, see [`HookEvent::matcher_field`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let session = Session::new(Settings::default(), Arc::new(CatalogSnapshotCache::default()));
    /// # session.before_agent(&repository.catalog(), &AgentSpec::main());
    /// let fired = session.fire_event(&AgentName::default(), HookEvent::PreCompact, &json!({"trigger": "auto"}));
    /// assert!(fired.hooks.is_empty(), "no loaded skill has a hook for this event");
    /// ```
    pub fn fire_event(&self, agent: &AgentName, event: HookEvent, input: &Value) -> FiredHooks {
        let mut state = self.lock();
        let fired = fire_event(&state, agent, &loaded_skills(&state, agent), event, input);
        state.apply(&fired.delta);
        fired
    }

    /// The definitions of the tools that the agent can call, with the names of the skills that it can see. The host's own
    /// tools follow, as far as loaded skills make them visible.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// # let session = Session::new(settings, Arc::new(CatalogSnapshotCache::default()));
    /// # session.before_agent(&catalog, &AgentSpec::main());
    /// # let agent = AgentName::default();
    /// let tools: Vec<_> = session.tools(&agent).iter().map(|tool| tool.to_format(ToolFormat::Anthropic)).collect();
    /// assert_eq!(tools[1]["name"], "skill_load");
    /// let names = tools[1]["input_schema"]["properties"]["skill"]["enum"].as_array().unwrap();
    /// assert!(names.contains(&json!("csv-report")));
    /// ```
    pub fn tools(&self, agent: &AgentName) -> Vec<ToolDefinition> {
        let state = self.lock();
        let skills = VisibleSkills {
            names: state.visible(agent).map(|skill| skill.name.as_str()).collect(),
            take_arguments: state.visible(agent).any(|skill| skill.argument_hint().is_some()),
        };
        let mut tools = define_tools(
            self.settings.dialect,
            |tool| self.settings.registered_tools.contains(&tool),
            &skills,
        );
        tools.extend(state.visible_host_tools(agent).into_iter().map(ToolDefinition::from));
        tools
    }

    /// Registers tools of the host. They become visible when a skill that needs them is loaded.
    pub fn register_tools(
        &self,
        catalog: &Catalog,
        agent: &AgentName,
        input: &RegisterToolsInput,
    ) -> Result<OperationOutcome<RegisterToolsResult>, LoaderError> {
        let mut state = self.lock();
        let outcome = self
            .call_context(catalog, &state, agent, Caller::Model)
            .register_tools(input)?;
        state.apply(&outcome.delta);
        Ok(outcome)
    }

    /// Checks that a tool exists. The error names the tools that do.
    pub fn check_tool_exists(&self, catalog: &Catalog, agent: &AgentName, tool: &str) -> Result<(), LoaderError> {
        let state = self.lock();
        self.call_context(catalog, &state, agent, Caller::Model)
            .find_tool(tool)
            .map(|_| ())
    }

    /// Calls a tool of this crate, if the policy allows it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// # let session = Session::new(settings, Arc::new(CatalogSnapshotCache::default()));
    /// # session.before_agent(&catalog, &AgentSpec::main());
    /// # let agent = AgentName::default();
    /// let load = session.call(&catalog, &agent, Caller::Model, "skill_load", &json!({"skill": "csv-report"}))?;
    /// let ToolCallReply::Done { outcome, .. } = load else { unreachable!() };
    /// assert_eq!(outcome.result["skill"], "csv-report");
    /// assert!(session.state().loaded(&agent).any(|loaded| loaded.skill.as_str() == "csv-report"));
    ///
    /// let run = json!({"skill": "csv-report", "command": "ls"});
    /// let run = session.call(&catalog, &agent, Caller::Model, "skill_run", &run)?;
    /// assert!(matches!(run, ToolCallReply::Run(_)), "the executor runs the command");
    /// # Ok::<(), LoaderError>(())
    /// ```
    pub fn call(
        &self,
        catalog: &Catalog,
        agent: &AgentName,
        caller: Caller,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolCallReply, LoaderError> {
        let mut state = self.lock();
        let context = self.call_context(catalog, &state, agent, caller);
        // The caller of an unknown tool gets the list of tools, not a policy error.
        context.find_tool(tool)?;
        self.check_policy(&loaded_skills(&state, agent), tool, arguments)?;
        let reply = context.call(tool, arguments)?;
        if let ToolCallReply::Done { outcome, .. } = &reply {
            state.apply(&outcome.delta);
        }
        Ok(reply)
    }

    fn check_policy(&self, skills: &[&Arc<SkillView>], tool: &str, arguments: &Value) -> Result<(), LoaderError> {
        let policy = self.settings.policy;
        if policy == PolicyKind::Recommend {
            return Ok(());
        }
        let declared: Vec<DeclaredTools<'_>> = skills.iter().map(|skill| skill.declared_tools()).collect();
        match check(policy, &self.settings.always_allowed, &declared, tool, arguments) {
            Verdict::Allowed => Ok(()),
            Verdict::Blocked(reason) => {
                let policy = policy.as_str();
                tracing::warn!(tool, policy, "Tool '{tool}' blocked by allowed-tools policy");
                Err(LoaderError::ToolNotAllowed {
                    tool: tool.to_owned(),
                    skills: skills.iter().map(|skill| Arc::clone(skill)).collect(),
                    reason,
                })
            }
        }
    }

    fn call_context<'c>(
        &'c self,
        catalog: &'c Catalog,
        state: &'c SkillsState,
        agent: &'c AgentName,
        caller: Caller,
    ) -> CallContext<'c> {
        CallContext {
            settings: &self.settings,
            catalog,
            state,
            texts: &self.texts,
            agent,
            caller,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SkillsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn loaded_skills<'s>(state: &'s SkillsState, agent: &AgentName) -> Vec<&'s Arc<SkillView>> {
    state.loaded_views(agent).map(|(_, skill)| skill).collect()
}

/// Unloads the skills that only one prompt shows, and removes all notes.
fn discard_shown_once(state: &SkillsState, agent: &AgentName) -> StateDelta {
    let once = state.loaded(agent).filter(|loaded| loaded.mode == LoadMode::Once);
    let unload = once.map(|loaded| StateOperation::Unload {
        agent: agent.clone(),
        skill: loaded.skill.clone(),
    });
    let notes = state.notes(agent).iter().map(|note| StateOperation::RemoveNote {
        agent: agent.clone(),
        note: note.clone(),
    });
    unload.chain(notes).collect()
}
