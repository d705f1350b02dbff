//! Loading by the host itself: a person picked the skill, and the dialect may have no tool for it.

use serde_json::json;
use skillbox_loader::{Answer, Caller, Engine, LoadInput, TurnTexts};

use super::call::{Made, ToolCall};
use super::error::ToolError;
use super::outcome::ToolOutcome;
use crate::agent::{AgentSession, Entry, Keep, Stepped};

impl AgentSession {
    /// Loads a skill for an agent on behalf of the user, whatever tools its model has.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, History, Runtime, RuntimeSettings};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// use skillbox_runtime::LoadInput;
    ///
    /// let agent = AgentName::default();
    /// let typed = LoadInput { skill: "csv-report".to_owned(), ..LoadInput::default() };
    /// session.load_for_user(&agent, &typed)?;
    /// let section = session.modify_request(&agent, History::Whole)?.unwrap();
    /// assert!(section.text.contains("- csv-report [Loaded]: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_for_user(
        &self,
        agent: &skillbox_loader::AgentName,
        input: &LoadInput,
    ) -> Result<ToolOutcome, ToolError> {
        let Stepped {
            value: Answer { result, text, delta },
            before,
            after,
        } = self.step(Entry::AsConfigured, |loader, catalog| {
            let engine = Engine {
                settings: loader.settings(),
                catalog,
                state: &loader.state(),
                texts: &TurnTexts::default(),
                agent,
                caller: Caller::User,
            };
            let answer = engine.load(input)?;
            loader.apply(&answer.delta);
            Ok((answer, Keep::Changes))
        })?;
        let call = ToolCall {
            agent: agent.clone(),
            caller: Caller::User,
            ..ToolCall::new("load", json!(input))
        };
        let next = result.hooks.clone();
        let result = json!(result);
        self.finish(
            &call,
            Made {
                result,
                text,
                delta,
                before,
                after,
                hooks: Vec::new(),
                next,
                report: None,
            },
            None,
        )
    }
}
