//! Finds and reads a SKILL.md the way the reference tool does.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::value::{self, Value};
use crate::skill_md::MAX_SKILL_MD_BYTES;

/// The fields of the frontmatter in source order.
pub(super) type Fields = Vec<(String, Value)>;

/// The directory that an argument means, spelled as the reference prints it.
///
/// Doubled slashes, `.` components and a trailing slash go; a path to a file named SKILL.md, in any letter case,
/// becomes its directory. Links and `..` stay.
pub fn skill_path(argument: &Path) -> PathBuf {
    let path = spelled(argument);
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

fn spelled(argument: &Path) -> PathBuf {
    let bytes = argument.as_os_str().as_bytes();
    let exactly_two_slashes = bytes.starts_with(b"//") && !bytes.starts_with(b"///");
    let mut path = PathBuf::new();
    for component in argument.components() {
        match component {
            Component::CurDir => {}
            Component::RootDir if exactly_two_slashes => path.push("//"),
            component => path.push(component),
        }
    }
    if path.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        path
    }
}

/// The name that the skill must have: the last component as spelled, never resolved.
pub(super) fn directory_name(path: &Path) -> String {
    match path.components().next_back() {
        Some(Component::Normal(name)) => name.to_string_lossy().into_owned(),
        Some(Component::ParentDir) => "..".to_owned(),
        _ => String::new(),
    }
}

/// SKILL.md, or else skill.md.
pub(super) fn find(directory: &Path) -> Option<PathBuf> {
    ["SKILL.md", "skill.md"]
        .into_iter()
        .map(|name| directory.join(name))
        .find(|path| path.exists())
}

/// Reads the fields of the frontmatter, or says what is wrong with the file.
pub(super) fn read_fields(skill_md: &Path) -> Result<Fields, String> {
    parse_bytes(read_bytes(skill_md)?)
}

/// Reads the fields of a file's content.
pub(super) fn parse_bytes(bytes: Vec<u8>) -> Result<Fields, String> {
    if bytes.len() as u64 > MAX_SKILL_MD_BYTES {
        return Err("SKILL.md has more than 10 MiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "SKILL.md is not valid UTF-8".to_owned())?;
    if text.contains('\r') {
        parse_fields(&text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        parse_fields(&text)
    }
}

/// Reads the file within its directory: a link that leads out of the skill is not followed, and nothing beyond
/// the limit is read, which the reference does not have.
fn read_bytes(skill_md: &Path) -> Result<Vec<u8>, String> {
    let (Some(directory), Some(name)) = (skill_md.parent(), skill_md.file_name()) else {
        return Err("Missing required file: SKILL.md".to_owned());
    };
    let failed = |error: Errno| match error {
        Errno::XDEV => "SKILL.md is a link that leads outside the skill directory".to_owned(),
        error => format!("SKILL.md cannot be read: {error}"),
    };
    let directory = rustix::fs::open(
        directory,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    // Without O_NONBLOCK, a FIFO under this name would wait for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = directory
        .and_then(|directory| rustix::fs::openat2(directory, name, flags, Mode::empty(), ResolveFlags::BENEATH))
        .map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("SKILL.md is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let mut limited = std::fs::File::from(file).take(MAX_SKILL_MD_BYTES + 1);
    limited
        .read_to_end(&mut bytes)
        .map_err(|error| format!("SKILL.md cannot be read: {error}"))?;
    Ok(bytes)
}

/// Cuts at the first two further occurrences of three dashes, wherever they stand, and reads what is between.
fn parse_fields(text: &str) -> Result<Fields, String> {
    let Some(rest) = text.strip_prefix("---") else {
        return Err("SKILL.md must start with YAML frontmatter (---)".to_owned());
    };
    let Some((yaml, _)) = rest.split_once("---") else {
        return Err("SKILL.md frontmatter not properly closed with ---".to_owned());
    };
    let fields = value::load(yaml).map_err(|refusal| {
        let before = &yaml[..refusal.offset.min(yaml.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("Invalid YAML in frontmatter: {refusal}\n  in \"SKILL.md\", line {line}, column {column}")
    })?;
    let mut fields = fields.ok_or_else(|| "SKILL.md frontmatter must be a YAML mapping".to_owned())?;
    for (_, value) in fields.iter_mut().filter(|(key, _)| key == "metadata") {
        if let Value::Map(pairs) = value {
            for (_, value) in pairs {
                *value = Value::Text(super::python::text_of(value));
            }
        }
    }
    Ok(fields)
}

/// A field by its name.
pub(super) fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// A text that is more than blanks.
pub(super) fn filled_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) if !super::python::strip(text).is_empty() => Some(text),
        _ => None,
    }
}
