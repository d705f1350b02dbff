//! A model that follows a script, but knows only what it is shown.

use serde_json::{Value, json};

use super::host::Shown;

/// What the model wants next.
pub enum Move {
    /// A tool to be called.
    Call { tool: &'static str, arguments: Value },
    /// The answer for the user.
    Say(String),
}

/// Wants to know what 8 to the power of one third is, exactly.
#[derive(Default)]
pub struct ScriptedModel {
    /// The documents that a tool listed.
    listed: Option<Vec<String>>,
}

const WANTED: &str = "exact fractions";
const INSTRUCTIONS: &str = "python3 scripts/calc.py '1/3 + 0.1'";
const DOCUMENT: &str = "references/calc.md";
const DOCUMENTED: &str = "right-associative";
const COMMAND: &str = "python3 scripts/calc.py '8 ** (1/3)'";

impl ScriptedModel {
    /// One look at the prompt, the tools and what the last call gave.
    pub fn next(&mut self, shown: &Shown<'_>) -> Result<Move, String> {
        if let Some(value) = shown.last_answer.and_then(exact_value) {
            return Ok(Move::Say(format!("8 to the power of 1/3 is exactly {value}.")));
        }
        let skill = Found::in_prompt(shown.prompt).ok_or("no skill fits the task")?;
        if !shown.contains(INSTRUCTIONS) {
            return load(&skill, shown);
        }
        if shown.contains(DOCUMENT) && !shown.contains(DOCUMENTED) {
            return self.document(&skill, shown);
        }
        run(&skill, shown)
    }

    /// Chooses the document that the instructions point to.
    fn document(&mut self, skill: &Found, shown: &Shown<'_>) -> Result<Move, String> {
        if !shown.has_tool("skill_select_docs") {
            let path = path_of_document(skill, shown).ok_or("nobody said where the skill's files are")?;
            return call("read_file", json!({"file_path": path}));
        }
        if self.listed.is_none() {
            match shown.last_answer.map(serde_json::from_str) {
                Some(Ok(listed)) => self.listed = Some(listed),
                _ => return call("skill_list_docs", json!({"skill": skill.name})),
            }
        }
        let docs: Vec<&String> = self.listed.iter().flatten().filter(|doc| *doc == DOCUMENT).collect();
        call(
            "skill_select_docs",
            json!({"skill": skill.name, "docs": docs, "mode": "add"}),
        )
    }
}

fn load(skill: &Found, shown: &Shown<'_>) -> Result<Move, String> {
    let name = &skill.name;
    match ["skill_load", "load_skill", "read_skill"]
        .into_iter()
        .find(|tool| shown.has_tool(tool))
    {
        Some("skill_load") => call("skill_load", json!({"skill": name})),
        Some(tool) => call(tool, json!({"skill_name": name})),
        None => call(
            "read_file",
            json!({"file_path": skill.location.as_ref().ok_or("no location is shown")?}),
        ),
    }
}

fn run(skill: &Found, shown: &Shown<'_>) -> Result<Move, String> {
    let tool = if shown.has_tool("skill_run") {
        "skill_run"
    } else {
        "Bash"
    };
    call(tool, json!({"skill": skill.name, "command": COMMAND}))
}

fn call(tool: &'static str, arguments: Value) -> Result<Move, String> {
    Ok(Move::Call { tool, arguments })
}

/// What a run printed, where the last answer is that of a run.
fn exact_value(answer: &str) -> Option<String> {
    let report: Value = serde_json::from_str(answer).ok()?;
    let printed: Value = serde_json::from_str(report["stdout"].as_str()?).ok()?;
    printed["exact"].as_str().map(str::to_owned)
}

/// A resource that a loaded skill names by its full path, or the document below the skill's directory.
fn path_of_document(skill: &Found, shown: &Shown<'_>) -> Option<String> {
    let named = shown.texts().find_map(|text| {
        let end = text.find(&format!("/{DOCUMENT}`"))?;
        let start = text[..end].rfind('`')? + 1;
        Some(format!("{}/{DOCUMENT}", &text[start..end]))
    });
    named.or_else(|| Some(format!("{}/{DOCUMENT}", skill.directory.as_ref()?)))
}

/// The skill that fits, as the prompt lists it.
struct Found {
    name: String,
    /// Path of its SKILL.md, where the prompt tells it.
    location: Option<String>,
    /// Its directory, where the prompt tells it.
    directory: Option<String>,
}

impl Found {
    fn in_prompt(prompt: &str) -> Option<Self> {
        let lines: Vec<&str> = prompt.lines().collect();
        let at = lines.iter().position(|line| line.contains(WANTED))?;
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
            // An entry of several lines between tags.
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
