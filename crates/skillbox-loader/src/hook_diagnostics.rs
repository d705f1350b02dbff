//! Reports the hooks of a skill that never fire.

use skillbox_model::Diagnostic;
use skillbox_repository::{ParseCode, SkillEntry};

use crate::hooks::{HookEvent, SkillHooks};

/// A diagnostic for each hook that names an unknown event or does not parse.
pub fn hook_diagnostics(entry: &SkillEntry) -> Vec<Diagnostic> {
    let Some(hooks) = entry.meta.hooks() else {
        return Vec::new();
    };
    let problems = SkillHooks::parse(hooks).problems.into_iter();
    problems.map(|problem| to_diagnostic(entry, problem)).collect()
}

fn to_diagnostic(entry: &SkillEntry, problem: String) -> Diagnostic {
    let code = ParseCode::InvalidHook;
    let key = problem.split(':').next().unwrap_or_default();
    let is_event = HookEvent::parse(key).is_some();
    Diagnostic {
        code: code.as_str(),
        severity: code.severity(),
        path: entry.skill_md_path().to_owned(),
        line: None,
        column: None,
        hint: Some(if is_event {
            "an event has a list of hooks, each with `type` command, prompt or agent".to_owned()
        } else {
            "see the table of events in docs/agents.md".to_owned()
        }),
        message: format!("the hook {problem}"),
    }
}
