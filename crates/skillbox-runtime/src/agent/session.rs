//! The small interface for agent backends: what to call when, and what comes back.

use std::sync::{Arc, Mutex, PoisonError};

use skillbox_loader::{
    AgentName, AgentStart, DynamicTools, History, PromptSection, Session, Settings, SkillsState, StateDelta,
    ToolDefinition, refresh,
};
use skillbox_model::{SessionId, Severity};
use skillbox_repository::Catalog;

use super::options::{AgentOptions, ChangesEnter, CommandHooks};
use super::state_keeper::{Keep, StateKeeper};
use crate::Runtime;
use crate::session::{Remembered, SessionError};
use crate::tools::ToolError;

/// One session of one host: agents that see skills, load them, and run them in the sandbox.
///
/// A host calls [`before_agent`](Self::before_agent) when a user's turn starts,
/// [`modify_request`](Self::modify_request) before each model call, [`tools`](Self::tools) for the definitions,
/// [`call`](Self::call) for our tools, and [`wrap_tool_call`](Self::wrap_tool_call) and
/// [`after_tool_call`](Self::after_tool_call) around its own.
///
/// Calls may come from several threads, and from several processes where the session is stored: each change is a
/// delta that is made under a lock, so none is lost.
#[derive(Debug)]
pub struct AgentSession {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) hooks: CommandHooks,
    changes: ChangesEnter,
    pub(crate) keeper: StateKeeper,
    /// Takes over the kept state for each step, and is touched under the keeper's lock only.
    loader: Session,
    /// What went wrong with skills when the turn began.
    warnings: Mutex<Option<Arc<[String]>>>,
}

/// What a step gave, and the state around it.
#[derive(Debug)]
pub(crate) struct Stepped<R> {
    pub value: R,
    pub before: SkillsState,
    pub after: SkillsState,
}

/// Whether a step begins by taking in what is new on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Where the session wants it, or knows nothing yet.
    AsConfigured,
    /// The step does that by itself.
    Untouched,
}

impl AgentSession {
    /// Opens a session, and makes it on its first use.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings};
    /// # let state = tempfile::tempdir()?;
    /// let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// let profiles = skillbox_sandbox::Profiles::shipped();
    /// // The third argument is what runs scripts; without it, skills can be read but not run.
    /// let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at(state.path()));
    /// let options = AgentOptions::new(Dialect::Skillbox).stored_as("s1".to_owned().try_into()?);
    /// let session = AgentSession::open(runtime.into(), options)?;
    /// assert_eq!(session.id().unwrap().as_str(), "s1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(runtime: Arc<Runtime>, options: AgentOptions) -> Result<Self, SessionError> {
        let keeper = match &options.session {
            Some(id) => StateKeeper::Stored(runtime.sessions().open_or_create(id)?, Remembered::default()),
            None => StateKeeper::Memory(Mutex::default()),
        };
        Ok(Self {
            loader: Session::new(options.settings, runtime.views.clone()),
            runtime,
            hooks: options.hooks,
            changes: options.changes,
            keeper,
            warnings: Mutex::default(),
        })
    }

    /// A session that starts where this one is and goes its own way: nothing of it is stored, and no hook's command
    /// runs.
    pub fn detached(&self) -> Result<Self, ToolError> {
        Ok(Self {
            runtime: self.runtime.clone(),
            hooks: CommandHooks::Offer,
            changes: self.changes,
            keeper: StateKeeper::Memory(Mutex::new(self.state()?)),
            loader: Session::new(self.settings().clone(), self.runtime.views.clone()),
            warnings: Mutex::default(),
        })
    }

    /// The name that state and workspace are kept under.
    pub fn id(&self) -> Option<&SessionId> {
        self.keeper.id()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        self.loader.settings()
    }

    /// The state as it is now.
    pub fn state(&self) -> Result<SkillsState, ToolError> {
        let looked = self.step(Entry::AsConfigured, |_, _| Ok(((), Keep::Nothing)))?;
        Ok(looked.after)
    }

    /// What to add to the system prompt of the next model call; none where there is nothing to say.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, History, Runtime, RuntimeSettings};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// let section = session.modify_request(&AgentName::default(), History::Whole)?.expect("there are skills");
    /// let system_prompt = section.appended_to("You are a helpful assistant.");
    /// assert!(system_prompt.contains("- csv-report: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn modify_request(&self, agent: &AgentName, history: History) -> Result<Option<PromptSection>, ToolError> {
        let stepped = self.step(Entry::AsConfigured, |loader, catalog| {
            let warnings = self.warnings(catalog);
            Ok((loader.modify_request(catalog, agent, history, &warnings), Keep::Changes))
        })?;
        Ok(stepped.value)
    }

    /// The definitions of our tools, with the names of the skills that the agent can see.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings, ToolFormat};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Trpc))?;
    /// let tools = session.tools(&AgentName::default())?;
    /// let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    /// assert_eq!(names, ["skill_load", "skill_select_docs", "skill_list_docs", "skill_run"]);
    /// let request = serde_json::json!({
    ///     "tools": tools.iter().map(|tool| tool.to_format(ToolFormat::OpenAi)).collect::<Vec<_>>(),
    /// });
    /// assert_eq!(request["tools"][0]["function"]["name"], "skill_load");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tools(&self, agent: &AgentName) -> Result<Vec<ToolDefinition>, ToolError> {
        let looked = self.step(Entry::AsConfigured, |loader, _| {
            Ok((loader.tools(agent), Keep::Nothing))
        })?;
        Ok(looked.value)
    }

    /// The host's own tools that the agent sees now: those given, then those that belong to a loaded skill or that
    /// it names in `allowed-tools`, each once.
    pub fn host_tools(
        &self,
        dynamic: &DynamicTools,
        always: &[String],
        agent: &AgentName,
    ) -> Result<Vec<String>, ToolError> {
        Ok(dynamic.visible(always, &self.state()?, agent))
    }

    /// Looks at the state, and changes it where the step says so, as one.
    pub(crate) fn step<R>(
        &self,
        entry: Entry,
        step: impl FnOnce(&Session, &Catalog) -> Result<(R, Keep), ToolError>,
    ) -> Result<Stepped<R>, ToolError> {
        let catalog = self.runtime.catalog();
        self.keeper.step(|kept| {
            self.loader.adopt(kept.clone());
            if entry == Entry::AsConfigured {
                self.take_in(&catalog, &kept);
            }
            let before = self.loader.state();
            let (value, keep) = step(&self.loader, &catalog)?;
            let after = self.loader.state();
            let changed = (keep == Keep::Changes && after != kept).then(|| after.clone());
            Ok((Stepped { value, before, after }, changed))
        })
    }

    /// Makes changes and keeps them.
    pub(crate) fn apply(&self, delta: &StateDelta) -> Result<(), ToolError> {
        self.step(Entry::Untouched, |loader, _| {
            loader.apply(delta);
            Ok(((), Keep::Changes))
        })
        .map(|_| ())
    }

    /// Starts an agent's turn in the state; what is new on disk comes in with it.
    pub(crate) fn start_turn(
        &self,
        start: &AgentStart,
    ) -> Result<Stepped<Option<skillbox_loader::TurnStart>>, ToolError> {
        if start.parent.is_none() {
            if self.changes == ChangesEnter::EveryTurn {
                self.runtime.repository.refresh();
            }
            *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.step(Entry::Untouched, |loader, catalog| {
            Ok((loader.before_agent(catalog, start), Keep::Changes))
        })
    }

    fn take_in(&self, catalog: &Catalog, kept: &SkillsState) {
        if kept.snapshot().is_none() || self.changes == ChangesEnter::EveryCall {
            let newer = self.runtime.views.snapshot(catalog);
            if let Some(change) = refresh(kept, &newer) {
                self.loader.apply(&change.into());
            }
        }
    }

    /// Skills that could not be used, as the turn found them.
    fn warnings(&self, catalog: &Catalog) -> Arc<[String]> {
        let mut kept = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let find = || {
            let skipped = catalog
                .diagnostics()
                .iter()
                .filter(|told| told.severity == Severity::Error);
            skipped
                .map(|told| format!("{}: {}", told.path.display(), told.message))
                .collect()
        };
        kept.get_or_insert_with(find).clone()
    }
}
