//! `to-prompt`: the `<available_skills>` block as the reference tool prints it.

use std::path::{Path, PathBuf};

use super::properties::Properties;
use super::python_format::{escape_html, strip_terminal_escapes};
use super::skill_md::{find_skill_md, skill_directory};

/// Returns the block for these skills in this order, without a final newline. An error is the text that the reference
/// tool prints after `Error: `.
pub fn to_prompt(paths: &[impl AsRef<Path>]) -> Result<String, String> {
    let mut lines = vec!["<available_skills>".to_owned()];
    for path in paths {
        let block = skill_block(&skill_directory(path.as_ref())).map_err(|error| strip_terminal_escapes(&error))?;
        lines.extend(block);
    }
    lines.push("</available_skills>".to_owned());
    Ok(strip_terminal_escapes(&lines.join("\n")))
}

fn skill_block(directory: &Path) -> Result<[String; 11], String> {
    let directory = resolve(directory)?;
    let properties = Properties::read(&directory)?;
    let location = find_skill_md(&directory).unwrap_or_else(|| directory.join("SKILL.md"));
    Ok([
        "<skill>".to_owned(),
        "<name>".to_owned(),
        escape_html(&properties.name),
        "</name>".to_owned(),
        "<description>".to_owned(),
        escape_html(&properties.description),
        "</description>".to_owned(),
        "<location>".to_owned(),
        location.display().to_string(),
        "</location>".to_owned(),
        "</skill>".to_owned(),
    ])
}

#[expect(
    clippy::disallowed_methods,
    reason = "the reference tool prints resolved paths, and the user chose this one"
)]
fn resolve(directory: &Path) -> Result<PathBuf, String> {
    std::fs::canonicalize(directory).map_err(|error| format!("{} cannot be resolved: {error}", directory.display()))
}
