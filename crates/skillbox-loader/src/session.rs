//! The hooks that a host calls, over one session's state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use skillbox_repository::Catalog;

use crate::agent::{AgentName, AgentStart};
use crate::call::Reply;
use crate::delta::{StateDelta, StateOperation};
use crate::engine::{Caller, Engine};
use crate::loader_error::LoaderError;
use crate::policy::{Grant, PolicyKind, Verdict, check};
use crate::prompt::{PromptInput, prompt_section};
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::{LoadMode, SkillsState};
use crate::steering::{FiredHook, HookEvent, Moment, fire};
use crate::tools::{Tool, ToolDefinition, definitions};
use crate::turn::{TurnStart, refresh};
use crate::turn_texts::TurnTexts;
use crate::views::ViewCache;

/// One session: a state, and the settings by which it is disclosed.
///
/// Every method looks and changes in one step, so that parallel calls lose nothing and the limit on loaded
/// skills holds. What a method changed it also returns, for stores and event streams.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    views: Arc<ViewCache>,
    state: Mutex<SkillsState>,
    texts: TurnTexts,
}

/// What is added to the system prompt of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptSection {
    /// The section.
    pub text: String,
    /// What showing it changes: skills that were loaded for one prompt go.
    pub delta: StateDelta,
}

impl PromptSection {
    /// The system prompt with the section at its end.
    pub fn appended_to(&self, system_prompt: &str) -> String {
        let gap = if system_prompt.is_empty() { "" } else { "\n\n" };
        format!("{system_prompt}{gap}{}", self.text)
    }
}

/// Whether the conversation still holds the results of earlier tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// It does.
    #[default]
    Whole,
    /// It was trimmed or summarised: what stood in results alone is put into the prompt.
    Trimmed,
}

/// A tool call that may go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolPass {
    /// Hooks that come first, for the host to carry out.
    pub hooks: Vec<FiredHook>,
    /// What changes.
    pub delta: StateDelta,
}

impl Session {
    /// A session that has yet to begin.
    pub fn new(settings: Settings, views: Arc<ViewCache>) -> Self {
        Self::resume(settings, views, SkillsState::default())
    }

    /// A session with a state from a store.
    pub fn resume(settings: Settings, views: Arc<ViewCache>, state: SkillsState) -> Self {
        Self {
            settings,
            views,
            state: Mutex::new(state),
            texts: TurnTexts::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The state as it is now.
    pub fn state(&self) -> SkillsState {
        self.lock().clone()
    }

    /// Goes on from a state that a store gave, in place of its own.
    pub fn adopt(&self, state: SkillsState) {
        *self.lock() = state;
    }

    /// Makes changes that were found elsewhere.
    pub fn apply(&self, delta: &StateDelta) {
        self.lock().apply(delta);
    }

    /// Takes in what changed on disk without starting a turn, for hosts that have none: what is loaded stays,
    /// and its words are read anew. None where no skill came, went or reads differently.
    pub fn refresh(&self, catalog: &Catalog) -> Option<StateDelta> {
        let newer = self.views.snapshot(catalog);
        let mut state = self.lock();
        self.texts.clear();
        let delta = StateDelta::from(refresh(&state, &newer)?);
        state.apply(&delta);
        Some(delta)
    }

    /// Starts an agent's turn; none where nothing changes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// let session = Session::new(settings, Arc::new(ViewCache::default()));
    /// let turn = session.before_agent(&catalog, &AgentStart::main());
    /// assert!(turn.is_some(), "the first turn takes the skills in");
    /// let again = session.before_agent(&catalog, &AgentStart::main());
    /// assert!(again.is_none(), "with nothing new, a second start changes nothing");
    /// ```
    pub fn before_agent(&self, catalog: &Catalog, start: &AgentStart) -> Option<TurnStart> {
        let newer = self.views.snapshot(catalog);
        let mut state = self.lock();
        if start.parent.is_none() {
            self.texts.clear();
        }
        let turn = self
            .engine(catalog, &state, &start.agent, Caller::Model)
            .turn_start(start, &newer);
        state.apply(&turn.delta);
        (turn != TurnStart::default()).then_some(turn)
    }

    /// What to add to the system prompt of the next model call; none where there is nothing to say.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// # let session = Session::new(settings, Arc::new(ViewCache::default()));
    /// # session.before_agent(&catalog, &AgentStart::main());
    /// # let agent = AgentName::default();
    /// let section = session.modify_request(&catalog, &agent, History::Whole, &[]).unwrap();
    /// assert!(section.text.contains("- csv-report: "));
    /// let prompt = section.appended_to("You are a careful analyst.");
    /// assert!(prompt.starts_with("You are a careful analyst.\n\n## Skills"));
    /// ```
    pub fn modify_request(
        &self,
        catalog: &Catalog,
        agent: &AgentName,
        history: History,
        warnings: &[String],
    ) -> Option<PromptSection> {
        let mut state = self.lock();
        let engine = self.engine(catalog, &state, agent, Caller::Model);
        let in_prompt = self.settings.delivery().in_prompt() || history == History::Trimmed;
        let bodies = if in_prompt { engine.bodies() } else { Vec::new() };
        let text = prompt_section(&PromptInput {
            settings: &self.settings,
            state: &state,
            agent,
            bodies: &bodies,
            warnings,
        })?;
        let delta = shown_once(&state, agent);
        state.apply(&delta);
        Some(PromptSection { text, delta })
    }

    /// Decides a tool call, ours or the host's, before it is made.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// settings.policy = PolicyKind::Strict;
    /// # let session = Session::new(settings, Arc::new(ViewCache::default()));
    /// # session.before_agent(&catalog, &AgentStart::main());
    /// # let agent = AgentName::default();
    /// let arguments = json!({"command": "curl example.com"});
    /// assert!(session.wrap_tool_call(&agent, "Bash", &arguments).is_ok(), "nothing is loaded yet");
    /// session.call(&catalog, &agent, Caller::Model, "skill_load", &json!({"skill": "csv-report"}))?;
    /// let blocked = session.wrap_tool_call(&agent, "WebFetch", &json!({})).unwrap_err();
    /// assert_eq!(blocked.body(Dialect::Skillbox).code.as_str(), "tool_not_allowed");
    /// # Ok::<(), LoaderError>(())
    /// ```
    pub fn wrap_tool_call(&self, agent: &AgentName, tool: &str, arguments: &Value) -> Result<ToolPass, LoaderError> {
        let mut state = self.lock();
        let skills = loaded_skills(&state, agent);
        self.check_policy(&skills, tool, arguments)?;
        // No hook is asked about dropping a skill: it could keep its own skill for ever.
        let drops_skill = matches!(self.settings.dialect.tool(tool), Some(Tool::Unload | Tool::Disable));
        let asked: &[_] = if drops_skill { &[] } else { &skills };
        let pass = fire_all(&state, agent, asked, HookEvent::PreToolUse, tool);
        state.apply(&pass.delta);
        Ok(pass)
    }

    /// What is to be done after a tool call.
    pub fn after_tool_call(&self, agent: &AgentName, tool: &str) -> ToolPass {
        let mut state = self.lock();
        let pass = fire_all(
            &state,
            agent,
            &loaded_skills(&state, agent),
            HookEvent::PostToolUse,
            tool,
        );
        state.apply(&pass.delta);
        pass
    }

    /// The tools that the agent is offered, with the names of the skills it can see.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// # let session = Session::new(settings, Arc::new(ViewCache::default()));
    /// # session.before_agent(&catalog, &AgentStart::main());
    /// # let agent = AgentName::default();
    /// let tools: Vec<_> = session.tools(&agent).iter().map(|tool| tool.to_format(ToolFormat::Anthropic)).collect();
    /// assert_eq!(tools[1]["name"], "skill_load");
    /// let names = tools[1]["input_schema"]["properties"]["skill"]["enum"].as_array().unwrap();
    /// assert!(names.contains(&json!("csv-report")));
    /// ```
    pub fn tools(&self, agent: &AgentName) -> Vec<ToolDefinition> {
        let state = self.lock();
        let names: Vec<&str> = state.visible(agent).map(|skill| skill.name.as_str()).collect();
        definitions(
            self.settings.dialect,
            |tool| self.settings.registered.contains(&tool),
            &names,
        )
    }

    /// Whether there is a tool of that name; a refusal says what there is instead.
    pub fn knows_tool(&self, catalog: &Catalog, agent: &AgentName, tool: &str) -> Result<(), LoaderError> {
        let state = self.lock();
        self.engine(catalog, &state, agent, Caller::Model)
            .tool(tool)
            .map(|_| ())
    }

    /// Makes one call of one of our tools, within the policy.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde_json::json;
    /// # use skillbox_loader::*;
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let catalog = repository.catalog();
    /// # let mut settings = Settings::default();
    /// # let session = Session::new(settings, Arc::new(ViewCache::default()));
    /// # session.before_agent(&catalog, &AgentStart::main());
    /// # let agent = AgentName::default();
    /// let load = session.call(&catalog, &agent, Caller::Model, "skill_load", &json!({"skill": "csv-report"}))?;
    /// let Reply::Done(answer) = load else { unreachable!() };
    /// assert_eq!(answer.result["skill"], "csv-report");
    /// assert!(session.state().loaded(&agent).any(|loaded| loaded.skill.as_str() == "csv-report"));
    ///
    /// let run = json!({"skill": "csv-report", "command": "ls"});
    /// let run = session.call(&catalog, &agent, Caller::Model, "skill_run", &run)?;
    /// assert!(matches!(run, Reply::Run(_)), "what runs is the executor's business");
    /// # Ok::<(), LoaderError>(())
    /// ```
    pub fn call(
        &self,
        catalog: &Catalog,
        agent: &AgentName,
        caller: Caller,
        tool: &str,
        arguments: &Value,
    ) -> Result<Reply, LoaderError> {
        let mut state = self.lock();
        let engine = self.engine(catalog, &state, agent, caller);
        // No policy speaks of what is no tool; its caller is told what there is.
        engine.tool(tool)?;
        self.check_policy(&loaded_skills(&state, agent), tool, arguments)?;
        let reply = engine.call(tool, arguments)?;
        if let Reply::Done(answer) = &reply {
            state.apply(&answer.delta);
        }
        Ok(reply)
    }

    fn check_policy(&self, skills: &[&Arc<SkillView>], tool: &str, arguments: &Value) -> Result<(), LoaderError> {
        let policy = self.settings.policy;
        if policy == PolicyKind::Recommend {
            return Ok(());
        }
        let grants: Vec<Grant<'_>> = skills.iter().map(|skill| skill.grant()).collect();
        match check(policy, &self.settings.always_allowed, &grants, tool, arguments) {
            Verdict::Allowed => Ok(()),
            Verdict::Blocked(because) => {
                tracing::warn!(tool, policy = policy.as_str(), "tool blocked by allowed-tools policy");
                Err(LoaderError::ToolNotAllowed {
                    tool: tool.to_owned(),
                    skills: skills.iter().map(|skill| Arc::clone(skill)).collect(),
                    because,
                })
            }
        }
    }

    fn engine<'e>(
        &'e self,
        catalog: &'e Catalog,
        state: &'e SkillsState,
        agent: &'e AgentName,
        caller: Caller,
    ) -> Engine<'e> {
        Engine {
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

fn fire_all(
    state: &SkillsState,
    agent: &AgentName,
    skills: &[&Arc<SkillView>],
    event: HookEvent,
    tool: &str,
) -> ToolPass {
    // A matcher for Bash means our shell too.
    let subjects: &[&str] = match tool {
        "skill_run" | "skill_exec" => &[tool, "Bash"],
        _ => &[tool],
    };
    let mut pass = ToolPass::default();
    for skill in skills {
        let moment = Moment::tool_call(event, subjects);
        pass.hooks.extend(fire(state, agent, skill, moment, &mut pass.delta));
    }
    pass
}

/// What has stood in a prompt once and goes.
fn shown_once(state: &SkillsState, agent: &AgentName) -> StateDelta {
    let once = state.loaded(agent).filter(|loaded| loaded.mode == LoadMode::Once);
    let unload = once.map(|loaded| StateOperation::Unload {
        agent: agent.clone(),
        skill: loaded.skill.clone(),
    });
    let notes = state.notes(agent).iter().map(|note| StateOperation::NoteShown {
        agent: agent.clone(),
        note: note.clone(),
    });
    unload.chain(notes).collect()
}
