//! `skill_run`: checks the skills that a request names, and turns the report into a result.

use serde_json::{Value, json};
use skillbox_executor::job::{InputRef, RequestError};
use skillbox_loader::{AgentName, SkillsState};
use skillbox_model::{ErrorCode, RunReport, RunRequest};
use skillbox_repository::Catalog;

use crate::RunError;
use crate::runtime::not_loaded_error;

/// Refuses a request that also uses skills which the agent cannot see. The loader checks the skill that runs.
pub(crate) fn check_other_skills(
    request: &RunRequest,
    catalog: &Catalog,
    state: &SkillsState,
    agent: &AgentName,
) -> Result<(), RunError> {
    for (index, name) in request.with_skills.iter().enumerate() {
        check_visible(name, &format!("with_skills[{index}]"), catalog, state, agent)?;
    }
    for (index, input) in request.inputs.iter().enumerate() {
        let field = format!("inputs[{index}].from");
        if let InputRef::Skill { skill, .. } = InputRef::parse(&input.from, &field)? {
            check_visible(&skill, &field, catalog, state, agent)?;
        }
    }
    Ok(())
}

fn check_visible(
    name: &str,
    field: &str,
    catalog: &Catalog,
    state: &SkillsState,
    agent: &AgentName,
) -> Result<(), RunError> {
    if state.visible_skill(agent, name).is_some() {
        return Ok(());
    }
    if let Some(finding) = catalog.why_not_loaded(name).filter(|_| state.may_see(agent, name)) {
        return Err(not_loaded_error(finding, name, field).into());
    }
    let message = format!("unknown skill {name:?}: this agent sees no skill of that name");
    Err(RequestError::new(field, ErrorCode::UnknownSkill, message).into())
}

/// The report as the tool's result, and as text for the model.
pub(crate) fn report_as_tool_result(report: &RunReport) -> (Value, String) {
    let text = serde_json::to_string(report);
    let text = text.unwrap_or_else(|error| unreachable!("a report serialises to JSON: {error}"));
    (json!(report), text)
}
