//! The interface for agent backends.

use std::sync::{Arc, Mutex, PoisonError};

use skillbox_loader::{
    AgentName, AgentSpec, DynamicTools, HistoryCompleteness, PromptSection, Session, Settings, SkillsState, StateDelta,
    ToolDefinition, compute_skills_update,
};
use skillbox_model::{SessionId, Severity};
use skillbox_repository::Catalog;

use super::options::{AgentOptions, HookRunner, RefreshPolicy};
use super::tool_error::ToolError;
use crate::Runtime;
use crate::session::{Persist, SessionError, StateStore};

/// A session in which agents see skills, load them, and run them in the sandbox.
///
/// A host calls [`before_agent`](Self::before_agent) at the start of a user's turn,
/// [`modify_request`](Self::modify_request) before each model call, [`tools`](Self::tools) for the tool definitions,
/// [`call`](Self::call) for skillbox's tools, and [`wrap_tool_call`](Self::wrap_tool_call) and
/// [`after_tool_call`](Self::after_tool_call) around the host's own tools.
///
/// Several threads may call it, and several processes if the session is stored: each change is a delta that is applied
/// under a lock, so none is lost.
#[derive(Debug)]
pub struct AgentSession {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) hook_runner: HookRunner,
    refresh: RefreshPolicy,
    pub(crate) store: StateStore,
    /// Receives the stored state at the start of each step. It is used only under the lock of `store`.
    loader: Session,
    /// The unusable skills of the current turn; `None` until its first model call.
    warnings: Mutex<Option<Arc<[String]>>>,
}

/// The value of a step, with the state before and after it.
#[derive(Debug)]
pub(crate) struct StepResult<R> {
    pub value: R,
    pub before: SkillsState,
    pub after: SkillsState,
}

/// Whether a step starts by picking up skills that changed on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CatalogRefresh {
    /// As the options say, and always if the session has seen no skills yet.
    AsConfigured,
    /// Never; the step does it itself or does not need it.
    Skip,
}

impl AgentSession {
    /// Opens a session, or creates it if it does not exist.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings};
    /// # let state = tempfile::tempdir()?;
    /// let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// let profiles = skillbox_sandbox::Profiles::shipped();
    /// // The third argument lists the executors; without one, skills can be read but not run.
    /// let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at(state.path()));
    /// let options = AgentOptions::new(Dialect::Skillbox).stored_as("s1".to_owned().try_into()?);
    /// let session = AgentSession::open(runtime.into(), options)?;
    /// assert_eq!(session.id().unwrap().as_str(), "s1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(runtime: Arc<Runtime>, options: AgentOptions) -> Result<Self, SessionError> {
        let store = match &options.session {
            Some(id) => StateStore::on_disk(runtime.sessions().open_or_create(id)?),
            None => StateStore::in_memory(SkillsState::default()),
        };
        Ok(Self {
            loader: Session::new(options.settings, runtime.catalog_snapshots.clone()),
            runtime,
            hook_runner: options.hook_runner,
            refresh: options.refresh,
            store,
            warnings: Mutex::default(),
        })
    }

    /// A copy of the session in memory: its changes are not stored, and it does not run the commands of hooks.
    pub fn detached(&self) -> Result<Self, ToolError> {
        Ok(Self {
            runtime: self.runtime.clone(),
            hook_runner: HookRunner::Host,
            refresh: self.refresh,
            store: StateStore::in_memory(self.state()?),
            loader: Session::new(self.settings().clone(), self.runtime.catalog_snapshots.clone()),
            warnings: Mutex::default(),
        })
    }

    /// The id under which state and workspace are stored.
    pub fn id(&self) -> Option<&SessionId> {
        self.store.id()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        self.loader.settings()
    }

    /// The current state.
    pub fn state(&self) -> Result<SkillsState, ToolError> {
        let step = self.run_step(CatalogRefresh::AsConfigured, |_, _| Ok(((), Persist::Nothing)))?;
        Ok(step.after)
    }

    /// The section to add to the system prompt of the next model call, if there is one.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, HistoryCompleteness, Runtime, RuntimeSettings};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// let section = session.modify_request(&AgentName::default(), HistoryCompleteness::Complete)?.expect("there are skills");
    /// let system_prompt = section.appended_to("You are a helpful assistant.");
    /// assert!(system_prompt.contains("- csv-report: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn modify_request(
        &self,
        agent: &AgentName,
        history: HistoryCompleteness,
    ) -> Result<Option<PromptSection>, ToolError> {
        let step = self.run_step(CatalogRefresh::AsConfigured, |loader, catalog| {
            let warnings = self.warnings(catalog);
            Ok((
                loader.modify_request(catalog, agent, history, &warnings),
                Persist::Changes,
            ))
        })?;
        Ok(step.value)
    }

    /// The definitions of skillbox's tools, with the names of the skills that the agent can see.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings, ToolFormat};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
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
        let step = self.run_step(CatalogRefresh::AsConfigured, |loader, _| {
            Ok((loader.tools(agent), Persist::Nothing))
        })?;
        Ok(step.value)
    }

    /// The host's own tools that the agent sees now, without duplicates: those in `always`, then those that belong to a
    /// loaded skill or that a loaded skill names in `allowed-tools`.
    pub fn host_tools(
        &self,
        dynamic: &DynamicTools,
        always: &[String],
        agent: &AgentName,
    ) -> Result<Vec<String>, ToolError> {
        Ok(dynamic.visible(always, &self.state()?, agent))
    }

    /// Runs a step on the state under the lock of the store; its changes are stored if it returns [`Persist::Changes`].
    pub(crate) fn run_step<R>(
        &self,
        refresh: CatalogRefresh,
        step: impl FnOnce(&Session, &Catalog) -> Result<(R, Persist), ToolError>,
    ) -> Result<StepResult<R>, ToolError> {
        let catalog = self.runtime.catalog();
        self.store.update(|stored| {
            self.loader.replace_state(stored.clone());
            if refresh == CatalogRefresh::AsConfigured {
                self.refresh_catalog(&catalog, &stored);
            }
            let before = self.loader.state();
            let (value, persist) = step(&self.loader, &catalog)?;
            let after = self.loader.state();
            let changed = (persist == Persist::Changes && after != stored).then(|| after.clone());
            Ok((StepResult { value, before, after }, changed))
        })
    }

    /// Applies changes and stores them.
    pub(crate) fn apply(&self, delta: &StateDelta) -> Result<(), ToolError> {
        self.run_step(CatalogRefresh::Skip, |loader, _| {
            loader.apply(delta);
            Ok(((), Persist::Changes))
        })
        .map(|_| ())
    }

    /// Records the start of an agent's turn in the state, and picks up changed skills.
    pub(crate) fn start_turn(
        &self,
        spec: &AgentSpec,
    ) -> Result<StepResult<Option<skillbox_loader::TurnStartEffects>>, ToolError> {
        if spec.parent.is_none() {
            if self.refresh == RefreshPolicy::EveryTurn {
                self.runtime.repository.refresh();
            }
            *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.run_step(CatalogRefresh::Skip, |loader, catalog| {
            Ok((loader.before_agent(catalog, spec), Persist::Changes))
        })
    }

    fn refresh_catalog(&self, catalog: &Catalog, stored: &SkillsState) {
        if stored.snapshot().is_none() || self.refresh == RefreshPolicy::EveryCall {
            let newer = self.runtime.catalog_snapshots.snapshot(catalog);
            if let Some(change) = compute_skills_update(stored, &newer) {
                self.loader.apply(&change.into());
            }
        }
    }

    /// The skills that were unusable at the first model call of the turn.
    fn warnings(&self, catalog: &Catalog) -> Arc<[String]> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let find_unusable = || {
            let errors = catalog
                .diagnostics()
                .iter()
                .filter(|diagnostic| diagnostic.severity == Severity::Error);
            errors
                .map(|error| format!("{}: {}", error.path.display(), error.message))
                .collect()
        };
        warnings.get_or_insert_with(find_unusable).clone()
    }
}
