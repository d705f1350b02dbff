//! The algorithm of document 000, transcribed: discovery, `load_skill`, and the list of skills.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// `SkillMetadata`, with the directory of the skill.
#[derive(Clone, Debug)]
pub struct Metadata {
    pub name: String,
    pub description: String,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    pub allowed_tools: Vec<String>,
    pub dir: PathBuf,
}

/// `SkillsMiddleware` with its state.
pub struct Middleware {
    pub sources: Vec<PathBuf>,
    pub max_description_budget: usize,
    pub max_loaded_skills: usize,
    pub skills_metadata: Vec<Metadata>,
    pub skills_loaded: Vec<String>,
    pub skill_resources: Map<String, Value>,
}

impl Middleware {
    /// Section 3.3, `before_agent`: assigning to a key of a dictionary keeps the position of the key.
    pub fn before_agent(&mut self, list_skills: impl Fn(&Path) -> Vec<Metadata>) {
        let mut all_skills: Vec<Metadata> = Vec::new();
        for source in &self.sources {
            for skill in list_skills(source) {
                match all_skills.iter_mut().find(|known| known.name == skill.name) {
                    Some(known) => *known = skill,
                    None => all_skills.push(skill),
                }
            }
        }
        self.skills_metadata = all_skills;
    }

    /// The state under the keys of section 2.2.
    pub fn state_keys(&self) -> Map<String, Value> {
        let metadata: Vec<Value> = self
            .skills_metadata
            .iter()
            .map(|skill| {
                json!({
                    "path": skill.dir.join("SKILL.md"), "name": skill.name, "description": skill.description,
                    "license": skill.license, "compatibility": skill.compatibility, "metadata": {},
                    "allowed_tools": skill.allowed_tools,
                })
            })
            .collect();
        Map::from_iter([
            ("skills_metadata".to_owned(), json!(metadata)),
            ("skills_loaded".to_owned(), json!(self.skills_loaded)),
            (
                "skill_resources".to_owned(),
                Value::Object(self.skill_resources.clone()),
            ),
        ])
    }

    pub fn names(&self) -> Vec<&str> {
        self.skills_metadata.iter().map(|skill| skill.name.as_str()).collect()
    }

    /// Section 3.4.1, `_execute_load_skill`: the text of the tool message.
    pub fn load_skill(&mut self, skill_name: &str) -> String {
        let Some(target) = self.skills_metadata.iter().find(|skill| skill.name == skill_name) else {
            let available = self.names().join(", ");
            return format!("Error: Skill '{skill_name}' not found. Available skills: {available}");
        };
        if self.skills_loaded.iter().any(|loaded| loaded == skill_name) {
            return format!("Skill '{skill_name}' is already loaded. Its instructions are already active.");
        }
        if self.skills_loaded.len() >= self.max_loaded_skills {
            return format!(
                "Error: Cannot load skill '{skill_name}'. Maximum number of simultaneously loaded skills reached \
                 ({}). Currently loaded: {}. Consider whether all loaded skills are still needed for the current task.",
                self.max_loaded_skills,
                self.skills_loaded.join(", ")
            );
        }
        let content = fs::read_to_string(target.dir.join("SKILL.md")).unwrap();
        let resources = discover_resources(&target.dir, skill_name);
        let mut parts = vec![content];
        if !resources.is_empty() {
            parts.push("\n\n---\n**Skill Resources:**\n".to_owned());
            for resource in &resources {
                let (kind, path) = (resource["type"].as_str().unwrap(), resource["path"].as_str().unwrap());
                parts.push(format!("- [{kind}] `{path}`"));
            }
        }
        self.skill_resources.insert(skill_name.to_owned(), json!(resources));
        self.skills_loaded.push(skill_name.to_owned());
        parts.join("\n")
    }

    /// Section 3.5.1, `_format_skills_list`.
    fn format_skills_list(&self) -> String {
        if self.skills_metadata.is_empty() {
            let paths: Vec<_> = self.sources.iter().map(|path| path.display().to_string()).collect();
            return format!(
                "(No skills available yet. You can create skills in {})",
                paths.join(" or ")
            );
        }
        let is_loaded = |skill: &Metadata| self.skills_loaded.contains(&skill.name);
        let mut sorted: Vec<&Metadata> = self.skills_metadata.iter().collect();
        sorted.sort_by_key(|skill| if is_loaded(skill) { 0 } else { 1 });
        let (mut lines, mut total_chars, mut excluded_count) = (Vec::new(), 0, 0);
        for skill in sorted {
            let name = &skill.name;
            let status = if is_loaded(skill) { " [Loaded]" } else { "" };
            let mut desc_line = format!("- **{name}**{status}: {}", skill.description);
            let annotations = format_annotations(skill);
            if !annotations.is_empty() {
                desc_line += &format!(" ({annotations})");
            }
            let mut skill_lines = vec![desc_line];
            if !skill.allowed_tools.is_empty() {
                skill_lines.push(format!("  -> Recommended tools: {}", skill.allowed_tools.join(", ")));
            }
            let resources = self.skill_resources.get(name).and_then(Value::as_array);
            if is_loaded(skill) && resources.is_some_and(|resources| !resources.is_empty()) {
                skill_lines.push(format!(
                    "  -> Resources: {}",
                    format_resource_summary(resources.unwrap())
                ));
            }
            if !is_loaded(skill) {
                skill_lines.push(format!("  -> Use `load_skill(\"{name}\")` to read full instructions"));
            }
            let skill_text = skill_lines.join("\n");
            let skill_chars = skill_text.chars().count();
            if !is_loaded(skill) && total_chars + skill_chars > self.max_description_budget {
                excluded_count += 1;
                continue;
            }
            total_chars += skill_chars;
            lines.push(skill_text);
        }
        if excluded_count > 0 {
            lines.push(format!(
                "\n({excluded_count} additional skill(s) not shown due to description budget limit. Use `ls` to browse \
                 skill directories for a complete list.)"
            ));
        }
        lines.join("\n")
    }

    /// Section 3.5.2, `modify_request`: the section that is appended to the system message.
    pub fn skills_section(&self) -> String {
        SKILLS_SYSTEM_PROMPT
            .replace("\\\n", "")
            .replace("{skills_locations}", &self.format_skills_locations())
            .replace("{skills_list}", &self.format_skills_list())
    }

    fn format_skills_locations(&self) -> String {
        let count = self.sources.len();
        let line = |(index, source): (usize, &PathBuf)| {
            let name = source.file_name().unwrap().to_str().unwrap();
            let (first, rest) = name.split_at(1);
            let suffix = if index + 1 == count { " (higher priority)" } else { "" };
            let path = source.display();
            format!(
                "**{}{} Skills**: `{path}`{suffix}",
                first.to_uppercase(),
                rest.to_lowercase()
            )
        };
        self.sources.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// `_format_skill_annotations` of the version before.
fn format_annotations(skill: &Metadata) -> String {
    let license = skill.license.iter().map(|license| format!("License: {license}"));
    let compatibility = skill.compatibility.iter().map(|text| format!("Compatibility: {text}"));
    license.chain(compatibility).collect::<Vec<_>>().join(", ")
}

/// Section 3.2.1, `_discover_resources`, for a backend that lists the standard directories first.
fn discover_resources(skill_dir: &Path, skill_name: &str) -> Vec<Value> {
    let files_of = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        files
    };
    let mut resources = Vec::new();
    for (directory, kind) in [("scripts", "script"), ("references", "reference"), ("assets", "asset")] {
        for path in files_of(&skill_dir.join(directory)) {
            resources.push(json!({"path": path, "type": kind, "skill_name": skill_name}));
        }
    }
    for path in files_of(skill_dir) {
        if path.file_name().unwrap() != "SKILL.md" {
            resources.push(json!({"path": path, "type": "other", "skill_name": skill_name}));
        }
    }
    resources
}

/// Section 3.5.1, `_format_resource_summary`.
fn format_resource_summary(resources: &[Value]) -> String {
    let mut by_type = std::collections::BTreeMap::<&str, usize>::new();
    for resource in resources {
        *by_type.entry(resource["type"].as_str().unwrap()).or_default() += 1;
    }
    let part = |(kind, count): (&str, usize)| format!("{count} {kind}{}", if count > 1 { "s" } else { "" });
    by_type.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Section 3.5.3, as printed there.
const SKILLS_SYSTEM_PROMPT: &str = r#"

## Skills System

You have access to a skills library that provides specialized capabilities \
and domain knowledge.

{skills_locations}

**Available Skills:**

{skills_list}

**How to Use Skills (Progressive Disclosure):**

Skills follow a **progressive disclosure** pattern - you see their name and \
description above, but only read full instructions when needed:

1. **Recognize when a skill applies**: Check if the user's task matches a \
skill's description
2. **Load the skill**: Use `load_skill("skill-name")` to read full \
instructions and discover resources
3. **Follow the skill's instructions**: The loaded content contains \
step-by-step workflows, best practices, and examples
4. **Access supporting files**: Use the resource paths shown in the loaded \
skill output with `read_file`

**When to Use Skills:**
- User's request matches a skill's domain (e.g., "research X" -> \
web-research skill)
- You need specialized knowledge or structured workflows
- A skill provides proven patterns for complex tasks

Remember: Skills make you more capable and consistent. When in doubt, check \
if a skill exists for the task!
"#;
