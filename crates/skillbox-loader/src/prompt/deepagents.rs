//! The prompt section of deepagents.

use std::fmt::Write as _;

use super::input::PromptInput;
use super::list_entry::{ListEntry, list_entries};
use super::resource_summary::resource_summary;
use super::source_locations::render_locations;
use crate::sanitize::{Markup, quote_argument, sanitize_markdown_line};
use crate::skill_view::SkillView;

const HEAD: &str = "

## Skills System

You have access to a skills library that provides specialized capabilities and domain knowledge.

";

const TAIL: &str = r#"

**How to Use Skills (Progressive Disclosure):**

Skills follow a **progressive disclosure** pattern - you see their name and description above, but only read full instructions when needed:

1. **Recognize when a skill applies**: Check if the user's task matches a skill's description
2. **Load the skill**: Use `load_skill("skill-name")` to read full instructions and discover resources
3. **Follow the skill's instructions**: The loaded content contains step-by-step workflows, best practices, and examples
4. **Access supporting files**: Use the resource paths shown in the loaded skill output with `read_file`

**When to Use Skills:**
- User's request matches a skill's domain (e.g., "research X" -> web-research skill)
- You need specialized knowledge or structured workflows
- A skill provides proven patterns for complex tasks

Remember: Skills make you more capable and consistent. When in doubt, check if a skill exists for the task!
"#;

pub(crate) fn render_section(input: &PromptInput<'_>) -> String {
    let mut text = String::from(HEAD);
    text.push_str(&render_locations(&input.settings.sources));
    text.push_str("\n\n**Available Skills:**\n\n");
    write_list(&mut text, input);
    text.push_str(TAIL);
    text
}

/// Writes loaded skills first, then the others, both in catalog order. An entry over the budget is skipped
/// and counted; a later, shorter entry may still fit.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    let mut skills = list_entries(input.state, input.agent);
    if skills.is_empty() {
        let paths: Vec<_> = input
            .settings
            .sources
            .iter()
            .map(|source| sanitize_markdown_line(&source.path))
            .collect();
        let _ = write!(
            text,
            "(No skills available yet. You can create skills in {})",
            paths.join(" or ")
        );
        return;
    }
    skills.sort_by_key(|entry| !entry.is_loaded);
    let mut total = 0;
    let mut excluded = 0;
    let mut separator = "";
    for entry in &skills {
        let before = text.len();
        text.push_str(separator);
        let start = text.len();
        write_entry(text, input, entry);
        let chars = text[start..].chars().count();
        if !entry.is_loaded && total + chars > input.settings.max_list_chars {
            excluded += 1;
            text.truncate(before);
            continue;
        }
        total += chars;
        separator = "\n";
    }
    if excluded > 0 {
        input.log_budget_exceeded(excluded);
        let _ = write!(
            text,
            "{separator}\n({excluded} additional skill(s) not shown due to description budget limit. Use `ls` to browse skill \
             directories for a complete list.)"
        );
    }
}

fn write_entry(text: &mut String, input: &PromptInput<'_>, entry: &ListEntry<'_>) {
    let skill = entry.skill;
    let name = skill.name_line(Markup::Markdown);
    let status = if entry.is_loaded { " [Loaded]" } else { "" };
    let manual = if skill.is_manual_only() { " (Manual only)" } else { "" };
    text.extend([
        "- **",
        &name,
        "**",
        status,
        manual,
        ": ",
        &skill.description_line(Markup::Markdown),
    ]);
    write_annotations(text, skill);
    if !skill.allowed_tools.is_empty() {
        let tools: Vec<_> = skill
            .allowed_tools
            .iter()
            .map(|tool| sanitize_markdown_line(tool))
            .collect();
        let _ = write!(text, "\n  -> Recommended tools: {}", tools.join(", "));
    }
    if !entry.is_loaded {
        if skill.is_manual_only() {
            text.push_str("\n  -> Do not load this skill yourself; the user does");
        } else {
            let name = quote_argument(&name);
            text.extend(["\n  -> Use `load_skill(", &name]);
            if let Some(hint) = skill.argument_hint() {
                text.extend([", args=", &quote_argument(hint)]);
            }
            text.push_str(")` to read full instructions");
        }
        return;
    }
    if let Some(resources) = input
        .state
        .resources(&skill.name)
        .filter(|resources| !resources.is_empty())
    {
        let _ = write!(text, "\n  -> Resources: {}", resource_summary(resources));
    }
}

fn write_annotations(text: &mut String, skill: &SkillView) {
    let license = skill.license.as_deref().map(|value| ("License", value));
    let compatibility = skill.compatibility.as_deref().map(|value| ("Compatibility", value));
    let mut open = " (";
    for (label, value) in license.into_iter().chain(compatibility) {
        let _ = write!(text, "{open}{label}: {}", sanitize_markdown_line(value));
        open = ", ";
    }
    if open == ", " {
        text.push(')');
    }
}
