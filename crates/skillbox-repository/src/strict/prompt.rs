//! `to-prompt`: the `<available_skills>` block as the reference prints it.

use std::path::{Path, PathBuf};

use super::properties::Properties;
use super::python::{html, without_escapes};
use super::skill_file::{find, skill_path};

/// The block for these skills in this order, without a final newline, or the error text after `Error: `.
pub fn to_prompt(paths: &[impl AsRef<Path>]) -> Result<String, String> {
    let mut lines = vec!["<available_skills>".to_owned()];
    for path in paths {
        let block = skill_block(&skill_path(path.as_ref())).map_err(|error| without_escapes(&error))?;
        lines.extend(block);
    }
    lines.push("</available_skills>".to_owned());
    Ok(without_escapes(&lines.join("\n")))
}

fn skill_block(directory: &Path) -> Result<[String; 11], String> {
    let directory = resolve(directory)?;
    let properties = Properties::read(&directory)?;
    let location = find(&directory).unwrap_or_else(|| directory.join("SKILL.md"));
    Ok([
        "<skill>".to_owned(),
        "<name>".to_owned(),
        html(&properties.name),
        "</name>".to_owned(),
        "<description>".to_owned(),
        html(&properties.description),
        "</description>".to_owned(),
        "<location>".to_owned(),
        location.display().to_string(),
        "</location>".to_owned(),
        "</skill>".to_owned(),
    ])
}

#[expect(
    clippy::disallowed_methods,
    reason = "the reference prints resolved paths; a person named this one"
)]
fn resolve(directory: &Path) -> Result<PathBuf, String> {
    std::fs::canonicalize(directory).map_err(|error| format!("{} cannot be resolved: {error}", directory.display()))
}
