//! Skills as prompts, which the user invokes by name.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Value, json};
use skillbox_repository::SkillMeta;
use skillbox_runtime::{Caller, Dialect, ToolCall};

use crate::blocking::internal_error;
use crate::page::{Page, paginate};
use crate::server_state::ServerState;

const PAGE_SIZE: usize = 200;
/// The only argument of a prompt: the text after the skill's name.
const ARGUMENTS_KEY: &str = "arguments";

/// The skills that users can invoke, by name.
pub(crate) fn list(server: &ServerState, cursor: Option<&str>) -> Result<Page<Prompt>, ErrorData> {
    let catalog = server.runtime.catalog();
    let mut prompts: Vec<Prompt> = catalog
        .skills()
        .map(|skill| &skill.meta)
        .filter(|meta| meta.user_invocable())
        .map(to_prompt)
        .collect();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    paginate(prompts, |prompt| &prompt.name, cursor, PAGE_SIZE)
}

fn to_prompt(meta: &SkillMeta) -> Prompt {
    let mut argument = PromptArgument::new(ARGUMENTS_KEY).with_required(false);
    if let Some(hint) = meta.argument_hint() {
        argument = argument.with_description(hint);
    }
    Prompt::new(meta.name.as_str(), Some(&*meta.description), Some(vec![argument]))
}

/// A skill's instructions with the arguments inserted, as a message of the user.
pub(crate) fn get(server: &ServerState, request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let catalog = server.runtime.catalog();
    let invocable = catalog.get(&request.name).filter(|skill| skill.meta.user_invocable());
    let Some(skill) = invocable else {
        let message = format!("no prompt is named {:?}", request.name);
        return Err(ErrorData::invalid_params(message, None));
    };
    let mut arguments = json!({"skill": request.name});
    for (name, value) in request.arguments.iter().flatten() {
        match value {
            Value::String(text) if name == ARGUMENTS_KEY => arguments[ARGUMENTS_KEY] = json!(text),
            _ => {
                let message = format!("the prompt takes one string argument, {ARGUMENTS_KEY:?}; {name:?} is invalid");
                return Err(ErrorData::invalid_params(message, None));
            }
        }
    }
    let session = server.ephemeral_session().map_err(|error| internal_error(&error))?;
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
