//! The interface for agent backends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use skillbox_loader::{
    AgentName, AgentSpec, Dialect, DynamicTools, ForkedSkills, HistoryCompleteness, PromptSection, Session, Settings,
    ShownPaths, SkillsState, StateDelta, ToolDefinition,
};
use skillbox_model::{SessionId, Severity, SkillName};
use skillbox_repository::{Catalog, SkillEntry};

use super::options::{AgentOptions, HookRunner, RefreshPolicy};
use super::tool_error::ToolError;
use crate::session::{Persist, SessionError, StateStore, read_fork_origin};
use crate::{RunOrigin, Runtime};

/// The maximum size of the texts that a stored session keeps for the current turn. Larger ones are read again when a prompt
/// shows them.
const MAX_STORED_TEXT_BYTES: usize = 4 << 20;

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
    /// Maximum bytes of file content in the result of one tool call.
    pub(crate) inline_for_models: usize,
    refresh: RefreshPolicy,
    pub(crate) store: StateStore,
    /// Receives the stored state at the start of each step. It is used only under the lock of `store`.
    loader: Session,
    has_restored_texts: AtomicBool,
    /// The unusable skills of the current turn; `None` until its first model call.
    warnings: Mutex<Option<Arc<[String]>>>,
    /// Where the runs of this session come from.
    pub(crate) origin: RunOrigin,
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
    /// let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir(state.path()));
    /// let options = AgentOptions::new(Dialect::Skillbox).stored_as("s1".to_owned().try_into()?);
    /// let session = AgentSession::open(runtime.into(), options)?;
    /// assert_eq!(session.id().unwrap().as_str(), "s1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(runtime: Arc<Runtime>, options: AgentOptions) -> Result<Self, SessionError> {
        let refresh = options.refresh();
        let mut settings = options.settings;
        let store = match &options.session {
            Some(id) => {
                let session = runtime.sessions().open_or_create(id)?;
                // As in other systems, a fork does not fork again.
                if read_fork_origin(&session)?.is_some() {
                    settings.forked_skills = ForkedSkills::SameSession;
                }
                StateStore::on_disk(session)
            }
            None => StateStore::in_memory(SkillsState::default()),
        };
        Ok(Self {
            refresh,
            loader: Session::new(settings, runtime.catalog_snapshots.clone()),
            runtime,
            hook_runner: options.hook_runner,
            inline_for_models: options.inline_for_models,
            store,
            has_restored_texts: AtomicBool::default(),
            warnings: Mutex::default(),
            origin: RunOrigin::default(),
        })
    }

    /// The same session, whose runs are logged with this origin.
    pub fn with_origin(self, origin: RunOrigin) -> Self {
        Self { origin, ..self }
    }

    /// Opens another session with the same options.
    pub(crate) fn open_other(&self, session: Option<SessionId>, settings: Settings) -> Result<Self, SessionError> {
        let options = AgentOptions {
            settings,
            session,
            hook_runner: self.hook_runner,
            refresh: Some(self.refresh),
            inline_for_models: self.inline_for_models,
        };
        Self::open(self.runtime.clone(), options)
    }

    /// A copy of the session in memory: its changes are not stored, and it does not run the commands of hooks.
    pub fn in_memory_copy(&self) -> Result<Self, ToolError> {
        Ok(Self {
            runtime: self.runtime.clone(),
            hook_runner: HookRunner::Host,
            inline_for_models: self.inline_for_models,
            refresh: self.refresh,
            store: StateStore::in_memory(self.state()?),
            loader: Session::new(self.settings().clone(), self.runtime.catalog_snapshots.clone()),
            has_restored_texts: AtomicBool::default(),
            warnings: Mutex::default(),
            origin: self.origin.clone(),
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
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
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
            if self.settings().dialect == Dialect::Agentskills {
                // This dialect has no tool for loading: the model opens a skill by the path in the list.
                self.extract_skills(catalog, catalog.skills().map(SkillEntry::name));
            }
            Ok((
                loader.modify_request(catalog, agent, history, &warnings),
                Persist::Changes,
            ))
        })?;
        Ok(step.value)
    }

    /// The definitions of skillbox's tools, with the names of the skills that the agent can see. Registered tools of the
    /// host follow, as far as loaded skills make them visible.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings, ToolFormat};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
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
        let refreshes_now = refresh == CatalogRefresh::AsConfigured && self.refresh == RefreshPolicy::EveryCall;
        if refreshes_now {
            self.update_catalog();
        }
        let catalog = self.runtime.catalog();
        self.store.update(|stored| {
            self.loader.replace_state(stored.clone());
            let texts_before = self.restore_turn_texts()?;
            let is_first_use = refresh == CatalogRefresh::AsConfigured && stored.snapshot().is_none();
            if refreshes_now || is_first_use {
                self.loader.refresh(&catalog);
            }
            let before = self.loader.state();
            let (value, persist) = step(&self.loader, &catalog)?;
            if texts_before.is_some_and(|count| count != self.loader.texts().change_count()) {
                let texts = self.loader.texts().export(MAX_STORED_TEXT_BYTES);
                self.store.write_turn_texts(&texts)?;
            }
            let after = self.loader.state();
            let changed = (persist == Persist::Changes && after != stored).then(|| after.clone());
            Ok((StepResult { value, before, after }, changed))
        })
    }

    /// Reads the texts that earlier processes of a stored session have read in this turn, at the first step of this one.
    /// Returns how often the texts have changed, or `None` if they are not stored.
    fn restore_turn_texts(&self) -> Result<Option<u64>, ToolError> {
        if self.id().is_none() || self.refresh == RefreshPolicy::EveryCall {
            return Ok(None);
        }
        let texts = self.loader.texts();
        if !self.has_restored_texts.swap(true, Ordering::Relaxed) {
            texts.import(self.store.read_turn_texts()?);
        }
        Ok(Some(texts.change_count()))
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
            self.update_catalog();
        }
        self.run_step(CatalogRefresh::Skip, |loader, catalog| {
            Ok((loader.before_agent(catalog, spec), Persist::Changes))
        })
    }

    /// Picks up changes on disk without starting a turn, for protocols in which the client asks for the current lists.
    /// Loaded skills stay loaded.
    pub fn refresh(&self) -> Result<(), ToolError> {
        self.update_catalog();
        self.run_step(CatalogRefresh::Skip, |loader, catalog| {
            loader.refresh(catalog);
            Ok(((), Persist::Changes))
        })
        .map(|_| ())
    }

    /// Updates the catalog to the current state of the disk.
    fn update_catalog(&self) {
        self.runtime.repository.refresh();
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Writes the files of embedded skills, if the host reads skills by path. A failure is logged: the instructions of
    /// the skill do not depend on its files.
    pub(crate) fn extract_skills<'n>(&self, catalog: &Catalog, names: impl Iterator<Item = &'n SkillName>) {
        if self.settings().shown_paths() != ShownPaths::Catalog {
            return;
        }
        for entry in names.filter_map(|name| catalog.get(name.as_str())) {
            if let Err(error) = self.runtime.extracted_skills.extract(entry) {
                tracing::warn!(skill = %entry.name(), %error, "the files of a built-in skill cannot be written");
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
                .map(|error| {
                    let (path, message) = (error.path.display(), &error.message);
                    tracing::warn!(code = error.code, "Skipped {path}: {message}");
                    format!("{path}: {message}")
                })
                .collect()
        };
        warnings.get_or_insert_with(find_unusable).clone()
    }
}
