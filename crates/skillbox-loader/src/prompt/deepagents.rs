//! The prompt section of deepagents.

use std::fmt::Write as _;

use super::listed::{Listed, listed};
use super::resource_summary::resource_summary;
use super::section::PromptInput;
use super::source_label::locations;
use super::warnings::load_warnings;
use crate::one_line::{Markup, one_line, quoted};
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

pub(crate) fn section(input: &PromptInput<'_>) -> String {
    let mut text = String::from(HEAD);
    text.push_str(&locations(&input.settings.sources));
    text.push_str(&load_warnings(input.warnings));
    text.push_str("\n\n**Available Skills:**\n\n");
    write_list(&mut text, input);
    text.push_str(TAIL);
    text
}

/// Loaded skills first, the others in the order in which their names were first seen; one that does not fit is
/// passed over and counted, and a later one may still fit.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    let mut skills = listed(input.state, input.agent);
    if skills.is_empty() {
        let paths: Vec<_> = input
            .settings
            .sources
            .iter()
            .map(|source| one_line(&source.path))
            .collect();
        let _ = write!(
            text,
            "(No skills available yet. You can create skills in {})",
            paths.join(" or ")
        );
        return;
    }
    // The list is in order already unless a name was taken over; comparing paths is the costly part.
    if skills.iter().any(|listed| listed.skill.first_seen.is_some()) {
        skills.sort_by(|a, b| a.skill.first_place().cmp(&b.skill.first_place()));
    }
    skills.sort_by_key(|listed| !listed.loaded);
    let mut total = 0;
    let mut excluded = 0;
    let mut separator = "";
    for listed in &skills {
        let before = text.len();
        text.push_str(separator);
        let start = text.len();
        write_entry(text, input, listed);
        let chars = text[start..].chars().count();
        if !listed.loaded && total + chars > input.settings.description_budget {
            excluded += 1;
            text.truncate(before);
            continue;
        }
        total += chars;
        separator = "\n";
    }
    if excluded > 0 {
        input.budget_exceeded(excluded);
        let _ = write!(
            text,
            "{separator}\n({excluded} additional skill(s) not shown due to description budget limit. Use `ls` to browse skill \
             directories for a complete list.)"
        );
    }
}

fn write_entry(entry: &mut String, input: &PromptInput<'_>, listed: &Listed<'_>) {
    let skill = listed.skill;
    let name = skill.name_line(Markup::Markdown);
    let status = if listed.loaded { " [Loaded]" } else { "" };
    let manual = if skill.is_manual_only() { " (Manual only)" } else { "" };
    entry.extend([
        "- **",
        &name,
        "**",
        status,
        manual,
        ": ",
        &skill.description_line(Markup::Markdown),
    ]);
    write_annotations(entry, skill);
    if !skill.allowed_tools.is_empty() {
        let tools: Vec<_> = skill.allowed_tools.iter().map(|tool| one_line(tool)).collect();
        let _ = write!(entry, "\n  -> Recommended tools: {}", tools.join(", "));
    }
    if !listed.loaded {
        if skill.is_manual_only() {
            entry.push_str("\n  -> Do not load this skill yourself; the user does");
        } else {
            let name = quoted(&name);
            entry.extend(["\n  -> Use `load_skill(", &name, ")` to read full instructions"]);
        }
        return;
    }
    if let Some(resources) = input
        .state
        .resources(&skill.name)
        .filter(|resources| !resources.is_empty())
    {
        let _ = write!(entry, "\n  -> Resources: {}", resource_summary(resources));
    }
}

fn write_annotations(entry: &mut String, skill: &SkillView) {
    let license = skill.license.as_deref().map(|text| ("License", text));
    let compatibility = skill.compatibility.as_deref().map(|text| ("Compatibility", text));
    let mut open = " (";
    for (label, text) in license.into_iter().chain(compatibility) {
        let _ = write!(entry, "{open}{label}: {}", one_line(text));
        open = ", ";
    }
    if open == ", " {
        entry.push(')');
    }
}
