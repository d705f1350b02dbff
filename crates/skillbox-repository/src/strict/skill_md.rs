//! Finds and reads a SKILL.md as the reference tool does.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use super::python_format::to_str;
use super::value::{Value, read_mapping};
use crate::fs::{ContainedDir, OpenError};
use crate::parse::{MAX_SKILL_MD_BYTES, SKILL_MD_NAMES, python_strip};

/// The fields of the frontmatter in source order.
pub(super) type Fields = Vec<(String, Value)>;

/// Returns the skill directory for a command-line argument, written as in the messages of the reference tool.
///
/// Doubled slashes, `.` components and a trailing slash are removed. A path to a file named SKILL.md, in any letter
/// case, becomes its directory. Links and `..` are kept.
pub fn skill_directory(argument: &Path) -> PathBuf {
    let path = normalize_path(argument);
    let is_skill_md = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().to_lowercase() == "skill.md");
    if is_skill_md && path.is_file() {
        return match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
    }
    path
}

fn normalize_path(argument: &Path) -> PathBuf {
    let bytes = argument.as_os_str().as_bytes();
    let has_two_slashes = bytes.starts_with(b"//") && !bytes.starts_with(b"///");
    let mut path = PathBuf::new();
    for component in argument.components() {
        match component {
            Component::CurDir => {}
            Component::RootDir if has_two_slashes => path.push("//"),
            component => path.push(component),
        }
    }
    if path.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        path
    }
}

/// The required name of the skill: the last component of the path as written, without resolving links.
pub(super) fn directory_name(path: &Path) -> String {
    match path.components().next_back() {
        Some(Component::Normal(name)) => name.to_string_lossy().into_owned(),
        Some(Component::ParentDir) => "..".to_owned(),
        _ => String::new(),
    }
}

/// Returns the path of SKILL.md, or else of skill.md.
pub(super) fn find_skill_md(directory: &Path) -> Option<PathBuf> {
    SKILL_MD_NAMES
        .into_iter()
        .map(|name| directory.join(name))
        .find(|path| path.exists())
}

/// Reads the fields of the frontmatter.
pub(super) fn read_fields(skill_md: &Path) -> Result<Fields, String> {
    parse_skill_md(read_skill_md(skill_md)?)
}

/// Reads the fields from the content of a SKILL.md.
pub(super) fn parse_skill_md(bytes: Vec<u8>) -> Result<Fields, String> {
    if bytes.len() as u64 > MAX_SKILL_MD_BYTES {
        return Err("SKILL.md has more than 10 MiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "SKILL.md is not valid UTF-8".to_owned())?;
    if text.contains('\r') {
        parse_frontmatter(&text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        parse_frontmatter(&text)
    }
}

/// Reads the file. Unlike the reference tool, this does not follow a link that points outside the skill, and reads at
/// most one byte more than the limit.
fn read_skill_md(skill_md: &Path) -> Result<Vec<u8>, String> {
    let (Some(directory), Some(name)) = (skill_md.parent(), skill_md.file_name()) else {
        return Err("Missing required file: SKILL.md".to_owned());
    };
    let unreadable = |error: io::Error| format!("SKILL.md cannot be read: {error}");
    let directory = ContainedDir::open_for_lookup(directory).map_err(unreadable)?;
    let file = directory
        .open_beneath(name.as_bytes(), OFlags::RDONLY)
        .map_err(|error| match error {
            OpenError::Outside => "SKILL.md is a link that leads outside the skill directory".to_owned(),
            OpenError::System(error) => unreadable(error),
        })?;
    let stat = rustix::fs::fstat(&file).map_err(|error| unreadable(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("SKILL.md is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let mut limited = std::fs::File::from(file).take(MAX_SKILL_MD_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Reads the frontmatter: the text between the three dashes at the start and the next three dashes, which may be
/// anywhere in a line.
fn parse_frontmatter(text: &str) -> Result<Fields, String> {
    let Some(rest) = text.strip_prefix("---") else {
        return Err("SKILL.md must start with YAML frontmatter (---)".to_owned());
    };
    let Some((yaml, _)) = rest.split_once("---") else {
        return Err("SKILL.md frontmatter not properly closed with ---".to_owned());
    };
    let fields = read_mapping(yaml).map_err(|error| {
        let before = &yaml[..error.offset.min(yaml.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("Invalid YAML in frontmatter: {error}\n  in \"SKILL.md\", line {line}, column {column}")
    })?;
    let mut fields = fields.ok_or_else(|| "SKILL.md frontmatter must be a YAML mapping".to_owned())?;
    for (_, value) in fields.iter_mut().filter(|(key, _)| key == "metadata") {
        if let Value::Map(pairs) = value {
            for (_, value) in pairs {
                *value = Value::Text(to_str(value));
            }
        }
    }
    Ok(fields)
}

/// Returns a field by its name.
pub(super) fn get_field<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Returns the text of a value, unless it is blank or not a text.
pub(super) fn non_blank_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) if !python_strip(text).is_empty() => Some(text),
        _ => None,
    }
}
