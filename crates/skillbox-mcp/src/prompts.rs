//! Skills as prompts: what a person starts by name, with the arguments that the skill hints at.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Value, json};
use skillbox_repository::SkillMeta;
use skillbox_runtime::{Caller, Dialect, ToolCall};

use crate::host::{Host, failed};
use crate::page::{Page, page};

const PAGE: usize = 200;
/// The one argument of a prompt: everything that is written after the skill's name.
const ARGUMENTS: &str = "arguments";

/// The skills that are offered to people, by name.
pub(crate) fn list(host: &Host, cursor: Option<&str>) -> Result<Page<Prompt>, ErrorData> {
    let catalog = host.runtime.catalog();
    let mut prompts: Vec<Prompt> = catalog
        .skills()
        .map(|skill| &skill.meta)
        .filter(|meta| meta.user_invocable())
        .map(prompt)
        .collect();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    page(prompts, |prompt| &prompt.name, cursor, PAGE)
}

fn prompt(meta: &SkillMeta) -> Prompt {
    let mut argument = PromptArgument::new(ARGUMENTS).with_required(false);
    if let Some(hint) = meta.argument_hint() {
        argument = argument.with_description(hint);
    }
    Prompt::new(meta.name.as_str(), Some(&*meta.description), Some(vec![argument]))
}

/// A skill's instructions with the arguments put in, as the user's words.
pub(crate) fn get(host: &Host, request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let catalog = host.runtime.catalog();
    let known = catalog.get(&request.name).filter(|skill| skill.meta.user_invocable());
    let Some(skill) = known else {
        let message = format!("no prompt is named {:?}", request.name);
        return Err(ErrorData::invalid_params(message, None));
    };
    let mut arguments = json!({"skill": request.name});
    for (name, value) in request.arguments.iter().flatten() {
        match value {
            Value::String(text) if name == ARGUMENTS => arguments[ARGUMENTS] = json!(text),
            _ => {
                let message = format!("the prompt takes one text, {ARGUMENTS:?}; {name:?} is something else");
                return Err(ErrorData::invalid_params(message, None));
            }
        }
    }
    let session = host.passing_session().map_err(|error| failed(&error))?;
    let call = ToolCall {
        caller: Caller::User,
        ..ToolCall::new("skill_load", arguments)
    };
    let loaded = session.call(&call).map_err(|error| {
        let body = error.body(Dialect::Skillbox);
        ErrorData::invalid_params(body.message.clone(), Some(json!({"error": body})))
    })?;
    let message = PromptMessage::new_text(Role::User, loaded.text);
    Ok(GetPromptResult::new(vec![message]).with_description(&*skill.meta.description))
}
