//! The prompt section of Spring AI Alibaba, which lists user skills and project skills separately.

use std::fmt;
use std::fmt::Write as _;

use super::guidance::omitted_note;
use super::input::PromptInput;
use super::list_budget::{EntryStyle, fit_list};
use super::list_entry::{ListEntry, list_entries, shown_directory, write_argument_hint};
use crate::sanitize::{Markup, sanitize_markdown_line};
use crate::skill_view::SkillGroup;
use crate::tool::Tool;

const HEAD: &str = "## Skills System

You have access to a library of skills: specialised abilities and knowledge, kept in a skill registry on the file system.

### Available Skills

";

const HOW_TO_USE: &str = "
### How to Use Skills (Progressive Disclosure)

The list above shows the name and description of every skill. Read the full instructions of a skill only when you need them:

1. **Recognize when a skill applies**: check whether the user's task matches a skill's description
2. **Read the skill's full instructions**: call `read_skill` with the name from the list
3. **Follow the skill's instructions**: its SKILL.md describes the steps, good practice and examples
4. **Access supporting files**: scripts, configuration and reference documents are opened by absolute paths

#### How to Read The Full Skill Instruction

";

const HOW_TO_READ: &str = "- Call `read_skill` with `skill_name` as the list shows it, or with `skill_path`, the directory of the skill. If you give both, they must refer to the same skill.
- Skill names are not tool names: a skill is never called, only read with `read_skill`.
";

const WHEN_TO_USE: &str = r#"
**Important:**

- **For SKILL.md files (skill instructions)**: always use `read_skill`; do not open them in another way.
- **For other supporting files that a skill uses (scripts, references, etc.)**: use any suitable tool, with absolute paths below the directory that the list shows.

#### When to Use Skills

- The user's request belongs to a skill's domain (for example "research X" → web-research)
- You need specialised knowledge or an ordered procedure
- A skill offers a proven procedure for a complex task

#### Skills are Self-Documenting

- Every SKILL.md says what its skill does and how to use it
- The list above shows the directory of every skill

#### Executing Skill Scripts

A skill may include Python scripts or other programs. Start them by absolute paths below the skill's directory.

### Example Workflow

User: "Can you research the latest developments in quantum computing?"

1. Look through the available skills → "web-research" fits
2. Read it: `read_skill("web-research")`
3. Follow its procedure (search → organise → write up)
4. Start its scripts by absolute paths

Skills make you more capable and more consistent. When in doubt, check whether a skill exists for the task.
"#;

pub(crate) fn render_section(input: &PromptInput<'_>, load_instructions: &str) -> String {
    let mut text = String::from(HEAD);
    write_list(&mut text, input);
    text.extend([HOW_TO_USE, load_instructions, WHEN_TO_USE]);
    text
}

/// Renders how to read, find and hide skills with the registered tools.
pub(crate) fn render_how_to_read(input: &PromptInput<'_>) -> String {
    let mut text = String::from(HOW_TO_READ);
    if let Some(search) = input.settings.tool_name(Tool::Search) {
        let _ = writeln!(text, "- `{search}` finds skills by name, description or path.");
    }
    if let Some(disable) = input.settings.tool_name(Tool::Disable) {
        let _ = writeln!(text, "- `{disable}` hides a skill for the rest of the session.");
    }
    text
}

/// Writes the two groups, each under its heading.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    let skills = list_entries(input.state, input.agent);
    let write = |out: &mut dyn fmt::Write, entry: &ListEntry<'_>, description: Option<&str>| {
        write_entry(out, input, entry, description)
    };
    let style = EntryStyle {
        markup: Markup::Markdown,
        write: &write,
    };
    let headings = [
        (SkillGroup::User, "**User Skills:**\n"),
        (SkillGroup::Project, "**Project Skills:**\n"),
    ];
    let heading_chars: usize = headings.iter().map(|(_, heading)| heading.len() + 1).sum();
    let budget = input.settings.max_list_chars.saturating_sub(heading_chars);
    let note_chars = omitted_note(input.settings, skills.len()).len() + 1;
    let list = fit_list(&skills, budget, note_chars, &style);
    let mut separator = "";
    for (group, heading) in headings {
        if list.shown().all(|entry| entry.skill.group != group) {
            continue;
        }
        text.extend([separator, heading]);
        separator = "\n";
        // Writing into a string cannot fail.
        let _ = list.write(text, &style, |entry| entry.skill.group == group);
    }
    if list.omitted > 0 {
        input.log_budget_exceeded(list.omitted);
        let _ = writeln!(text, "{}", omitted_note(input.settings, list.omitted));
    }
}

fn write_entry(
    out: &mut dyn fmt::Write,
    input: &PromptInput<'_>,
    entry: &ListEntry<'_>,
    description: Option<&str>,
) -> fmt::Result {
    let skill = entry.skill;
    out.write_str("- **")?;
    out.write_str(&skill.name_line(Markup::Markdown))?;
    out.write_str("**")?;
    if skill.is_manual_only() {
        out.write_str(" (Manual only)")?;
    }
    let Some(description) = description else { return Ok(()) };
    let directory = shown_directory(input.settings, skill);
    out.write_str(": ")?;
    out.write_str(description)?;
    write_argument_hint(out, skill)?;
    out.write_str(" → Supporting files (scripts, references, etc.) are located at directory `")?;
    out.write_str(&sanitize_markdown_line(&directory))?;
    out.write_str("`; form absolute paths with it.")
}
