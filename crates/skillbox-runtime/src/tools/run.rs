//! `skill_run`: a request that may run goes through the pipeline.

use serde_json::{Value, json};
use skillbox_executor::job::{InputRef, RequestError};
use skillbox_loader::{AgentName, SkillsState};
use skillbox_model::{ErrorCode, RunReport, RunRequest};

use crate::RunError;

/// Refuses a request that would show the agent files of a skill that it cannot see. The skill that runs is checked
/// by the loader; these are the others that the request names.
pub(crate) fn check_other_skills(request: &RunRequest, state: &SkillsState, agent: &AgentName) -> Result<(), RunError> {
    for (at, name) in request.with_skills.iter().enumerate() {
        check(name, &format!("with_skills[{at}]"), state, agent)?;
    }
    for (at, input) in request.inputs.iter().enumerate() {
        let field = format!("inputs[{at}].from");
        if let InputRef::Skill { skill, .. } = InputRef::parse(&input.from, &field)? {
            check(&skill, &field, state, agent)?;
        }
    }
    Ok(())
}

fn check(name: &str, field: &str, state: &SkillsState, agent: &AgentName) -> Result<(), RunError> {
    if state.visible_skill(agent, name).is_some() {
        return Ok(());
    }
    let message = format!("unknown skill {name:?}: this agent sees none of that name");
    Err(RequestError::new(field, ErrorCode::UnknownSkill, message).into())
}

/// The report as the tool's result, and as text for the model.
pub(crate) fn answer(report: &RunReport) -> (Value, String) {
    let text = serde_json::to_string(report);
    let text = text.unwrap_or_else(|error| unreachable!("a report can be written as JSON: {error}"));
    (json!(report), text)
}
