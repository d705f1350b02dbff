//! Instructions for using the registered tools.

use std::fmt::Write as _;

use super::input::PromptInput;
use crate::settings::{AtLimit, Settings};
use crate::tool::Tool;

/// Renders one line for each thing that the registered tools can do.
pub(crate) fn render_guidance(input: &PromptInput<'_>) -> String {
    let settings = input.settings;
    let mut text = String::new();
    let name = |tool| settings.tool_name(tool);
    if let Some(load) = name(Tool::Load) {
        let _ = writeln!(
            text,
            "- When a task fits a skill's description, load that skill with `{load}` before you start on the task, and \
             follow its instructions. The name of a skill is not the name of a tool: never call it as one."
        );
    }
    match (name(Tool::ListDocs), name(Tool::SelectDocs)) {
        (Some(list), Some(select)) => {
            let _ = writeln!(
                text,
                "- `{list}` names the documents of a skill, `{select}` chooses which of them you are shown. Choose only \
                 those that the task needs."
            );
        }
        (Some(list), None) => {
            let _ = writeln!(text, "- `{list}` names the documents of a skill.");
        }
        _ => {}
    }
    if let Some(read) = name(Tool::Read) {
        let _ = writeln!(text, "- `{read}` reads any other file of a skill.");
    }
    if let Some(run) = name(Tool::Run) {
        let _ = writeln!(
            text,
            "- `{run}` runs a command in a sandbox. It starts in the skill's own directory, /workspace/skills/<name>, \
             where changes do not last; write results to out/ and name them in `output_files`. Run a skill's scripts rather \
             than copying what they contain."
        );
    }
    if let (Some(unload), Some(limit)) = (name(Tool::Unload), settings.load_limit()) {
        let consequence = match settings.at_limit {
            AtLimit::Refuse => "loading another one is refused",
            AtLimit::EvictLeastRecent => "loading another one unloads the least recently used one",
        };
        let _ = writeln!(
            text,
            "- At most {limit} skills can be loaded at once; {consequence}. `{unload}` unloads a skill that is no longer \
             needed."
        );
    }
    if let Some(search) = name(Tool::Search) {
        let _ = writeln!(
            text,
            "- `{search}` finds skills by topic, including skills that are not listed here."
        );
    }
    if input.state.visible(input.agent).any(|skill| skill.is_manual_only()) {
        text.push_str("- A skill marked [Manual only] is loaded by the user. Do not load it yourself.\n");
    }
    text
}

/// Renders the line that counts the skills that the list omits and says how to reach them.
pub(crate) fn omitted_note(settings: &Settings, omitted: usize) -> String {
    let (are, skills) = if omitted == 1 {
        ("is", "skill")
    } else {
        ("are", "skills")
    };
    let how = match (settings.tool_name(Tool::Search), settings.tool_name(Tool::Load)) {
        (Some(search), _) => format!("find them with `{search}`"),
        (None, Some(load)) => format!("`{load}` accepts their names too"),
        (None, None) => "ask for them by name".to_owned(),
    };
    format!("({omitted} more {skills} {are} not listed: {how}.)")
}
