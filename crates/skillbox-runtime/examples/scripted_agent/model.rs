//! A scripted model that uses only what its input shows.

use serde_json::{Value, json};

use super::host::ModelInput;

/// The next action of the model.
pub enum ModelAction {
    /// Call a tool.
    Call { tool: &'static str, arguments: Value },
    /// Answer the user.
    Answer(String),
}

/// Computes 8 to the power of one third, exactly.
#[derive(Default)]
pub struct ScriptedModel {
    /// The documents that `skill_list_docs` returned.
    listed_docs: Option<Vec<String>>,
}

const DESCRIPTION_TEXT: &str = "exact fractions";
const INSTRUCTIONS_TEXT: &str = "python3 scripts/calc.py '1/3 + 0.1'";
const DOCUMENT: &str = "references/calc.md";
const DOCUMENT_TEXT: &str = "right-associative";
const COMMAND: &str = "python3 scripts/calc.py '8 ** (1/3)'";

impl ScriptedModel {
    /// Decides the next action from the prompt, the tools and the last answer.
    pub fn next(&mut self, input: &ModelInput<'_>) -> Result<ModelAction, String> {
        if let Some(value) = input.last_answer.and_then(exact_value) {
            return Ok(ModelAction::Answer(format!(
                "8 to the power of 1/3 is exactly {value}."
            )));
        }
        let skill = ListedSkill::in_prompt(input.prompt).ok_or("no skill fits the task")?;
        if !input.contains(INSTRUCTIONS_TEXT) {
            return load(&skill, input);
        }
        if input.contains(DOCUMENT) && !input.contains(DOCUMENT_TEXT) {
            return self.select_document(&skill, input);
        }
        run(&skill, input)
    }

    /// Selects the document that the instructions refer to.
    fn select_document(&mut self, skill: &ListedSkill, input: &ModelInput<'_>) -> Result<ModelAction, String> {
        if !input.has_tool("skill_select_docs") {
            let path = document_path(skill, input).ok_or("the prompt does not show where the skill's files are")?;
            return call("read_file", json!({"file_path": path}));
        }
        if self.listed_docs.is_none() {
            match input.last_answer.map(serde_json::from_str) {
                Some(Ok(listed)) => self.listed_docs = Some(listed),
                _ => return call("skill_list_docs", json!({"skill": skill.name})),
            }
        }
        let docs: Vec<&String> = self
            .listed_docs
            .iter()
            .flatten()
            .filter(|doc| *doc == DOCUMENT)
            .collect();
        call(
            "skill_select_docs",
            json!({"skill": skill.name, "docs": docs, "mode": "add"}),
        )
    }
}

fn load(skill: &ListedSkill, input: &ModelInput<'_>) -> Result<ModelAction, String> {
    let name = &skill.name;
    match ["skill_load", "load_skill", "read_skill"]
        .into_iter()
        .find(|tool| input.has_tool(tool))
    {
        Some("skill_load") => call("skill_load", json!({"skill": name})),
        Some(tool) => call(tool, json!({"skill_name": name})),
        None => call(
            "read_file",
            json!({"file_path": skill.location.as_ref().ok_or("no location is shown")?}),
        ),
    }
}

fn run(skill: &ListedSkill, input: &ModelInput<'_>) -> Result<ModelAction, String> {
    let tool = if input.has_tool("skill_run") {
        "skill_run"
    } else {
        "Bash"
    };
    call(tool, json!({"skill": skill.name, "command": COMMAND}))
}

fn call(tool: &'static str, arguments: Value) -> Result<ModelAction, String> {
    Ok(ModelAction::Call { tool, arguments })
}

/// The exact value that a run printed, if the last answer is the report of a run.
fn exact_value(answer: &str) -> Option<String> {
    let report: Value = serde_json::from_str(answer).ok()?;
    let printed: Value = serde_json::from_str(report["stdout"].as_str()?).ok()?;
    printed["exact"].as_str().map(str::to_owned)
}

/// The full path of the document as a loaded skill names it, or its path below the skill's directory.
fn document_path(skill: &ListedSkill, input: &ModelInput<'_>) -> Option<String> {
    let named = input.texts().find_map(|text| {
        let end = text.find(&format!("/{DOCUMENT}`"))?;
        let start = text[..end].rfind('`')? + 1;
        Some(format!("{}/{DOCUMENT}", &text[start..end]))
    });
    named.or_else(|| Some(format!("{}/{DOCUMENT}", skill.directory.as_ref()?)))
}

/// The suitable skill, as the prompt lists it.
struct ListedSkill {
    name: String,
    /// The path of its SKILL.md, if the prompt shows it.
    location: Option<String>,
    /// Its directory, if the prompt shows it.
    directory: Option<String>,
}

impl ListedSkill {
    fn in_prompt(prompt: &str) -> Option<Self> {
        let lines: Vec<&str> = prompt.lines().collect();
        let at = lines.iter().position(|line| line.contains(DESCRIPTION_TEXT))?;
        match lines[at].strip_prefix("- ") {
            Some(entry) => {
                let name = entry.trim_start_matches("**").split([' ', ':', '*']).next()?;
                let directory = entry
                    .rsplit_once("directory `")
                    .and_then(|(_, rest)| rest.split('`').next());
                Some(Self {
                    name: name.to_owned(),
                    location: None,
                    directory: directory.map(str::to_owned),
                })
            }
            // An entry in XML tags, over several lines.
            None => {
                let after = |tag: &str, lines: &[&str]| {
                    let tag = lines.iter().position(|line| *line == tag)?;
                    lines.get(tag + 1).map(|line| (*line).to_owned())
                };
                let begin = lines[..at].iter().rposition(|line| *line == "<skill>")?;
                let location = after("<location>", &lines[at..])?;
                Some(Self {
                    name: after("<name>", &lines[begin..])?,
                    directory: location.rsplit_once('/').map(|(directory, _)| directory.to_owned()),
                    location: Some(location),
                })
            }
        }
    }
}
