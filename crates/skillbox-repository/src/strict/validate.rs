//! `validate`: every error of a skill, in the words and order of the reference tool.

use std::path::Path;

use super::python_format::strip_terminal_escapes;
use super::skill_md::{
    Fields, directory_name, find_skill_md, get_field, non_blank_text, parse_skill_md, read_fields, skill_directory,
};
use super::value::Value;
use crate::parse::{NameViolation, find_name_violations, normalize_name, python_strip};

const ALLOWED_FIELDS: [&str; 6] = [
    "allowed-tools",
    "compatibility",
    "description",
    "license",
    "metadata",
    "name",
];

/// Returns the errors of a skill. A valid skill has none.
pub fn validate(path: &Path) -> Vec<String> {
    let directory = skill_directory(path);
    let errors = match find_and_read_fields(&directory) {
        Ok(fields) => check_fields(&fields, &directory_name(&directory)),
        Err(error) => vec![error],
    };
    errors.iter().map(|error| strip_terminal_escapes(error)).collect()
}

/// Returns the errors of a SKILL.md that is not on disk, as if it were in a directory of this name.
pub fn validate_text(text: &[u8], directory: &str) -> Vec<String> {
    let errors = match parse_skill_md(text.to_vec()) {
        Ok(fields) => check_fields(&fields, directory),
        Err(error) => vec![error],
    };
    errors.iter().map(|error| strip_terminal_escapes(error)).collect()
}

fn find_and_read_fields(directory: &Path) -> Result<Fields, String> {
    if !directory.exists() {
        return Err(format!("Path does not exist: {}", directory.display()));
    }
    if !directory.is_dir() {
        return Err(format!("Not a directory: {}", directory.display()));
    }
    let skill_md = find_skill_md(directory).ok_or_else(|| "Missing required file: SKILL.md".to_owned())?;
    read_fields(&skill_md)
}

fn check_fields(fields: &Fields, directory: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut unexpected: Vec<&str> = fields.iter().map(|(key, _)| key.as_str()).collect();
    unexpected.retain(|key| !ALLOWED_FIELDS.contains(key));
    unexpected.sort_unstable();
    if !unexpected.is_empty() {
        errors.push(format!(
            "Unexpected fields in frontmatter: {}. Only ['{}'] are allowed.",
            unexpected.join(", "),
            ALLOWED_FIELDS.join("', '")
        ));
    }
    match get_field(fields, "name").map(non_blank_text) {
        None => errors.push("Missing required field in frontmatter: name".to_owned()),
        Some(None) => errors.push("Field 'name' must be a non-empty string".to_owned()),
        Some(Some(name)) => check_name(name, directory, &mut errors),
    }
    match get_field(fields, "description").map(non_blank_text) {
        None => errors.push("Missing required field in frontmatter: description".to_owned()),
        Some(None) => errors.push("Field 'description' must be a non-empty string".to_owned()),
        Some(Some(text)) => check_length("Description", text, 1024, &mut errors),
    }
    match get_field(fields, "compatibility") {
        None => {}
        Some(Value::Text(text)) => check_length("Compatibility", text, 500, &mut errors),
        Some(_) => errors.push("Field 'compatibility' must be a string".to_owned()),
    }
    errors
}

fn check_name(name: &str, directory: &str, errors: &mut Vec<String>) {
    let name = normalize_name(python_strip(name));
    errors.extend(find_name_violations(&name).into_iter().map(|violation| match violation {
        NameViolation::TooLong(length) => format!("Skill name '{name}' exceeds 64 character limit ({length} chars)"),
        NameViolation::NotLowercase => format!("Skill name '{name}' must be lowercase"),
        NameViolation::EdgeHyphen => "Skill name cannot start or end with a hyphen".to_owned(),
        NameViolation::DoubleHyphen => "Skill name cannot contain consecutive hyphens".to_owned(),
        NameViolation::InvalidCharacter(_) => {
            format!("Skill name '{name}' contains invalid characters. Only letters, digits, and hyphens are allowed.")
        }
    }));
    if normalize_name(directory) != name {
        errors.push(format!("Directory name '{directory}' must match skill name '{name}'"));
    }
}

fn check_length(field: &str, text: &str, limit: usize, errors: &mut Vec<String>) {
    let length = text.chars().count();
    if length > limit {
        errors.push(format!("{field} exceeds {limit} character limit ({length} chars)"));
    }
}
