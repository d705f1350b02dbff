//! The findings of discovery: one constructor each, with its code, severity and hint.

use std::io;
use std::path::Path;

use skillbox_model::{Diagnostic, Severity};

/// Codes of the findings of discovery, for programs.
pub mod codes {
    /// A SKILL.md below another skill; it is not loaded.
    pub const NESTED_SKILL: &str = "nested_skill";
    /// Directories below the depth that is searched.
    pub const DEPTH_LIMIT: &str = "depth_limit";
    /// More directories than are searched.
    pub const DIRECTORY_LIMIT: &str = "directory_limit";
    /// A file or directory that cannot be read.
    pub const UNREADABLE: &str = "unreadable";
    /// A SKILL.md that is a directory, a FIFO, a socket or a device.
    pub const NOT_A_FILE: &str = "not_a_file";
    /// A SKILL.md over the size that is read.
    pub const FILE_TOO_LARGE: &str = "file_too_large";
    /// A link that leads out of its skill.
    pub const LINK_LEAVES_SKILL: &str = "link_leaves_skill";
    /// A link that leads nowhere.
    pub const DANGLING_LINK: &str = "dangling_link";
    /// A link that leads back to where it came from.
    pub const LINK_LOOP: &str = "link_loop";
    /// Something that was there and was gone when it was opened.
    pub const VANISHED: &str = "vanished";
    /// A source that does not exist.
    pub const SOURCE_MISSING: &str = "source_missing";
    /// A source that is not a directory.
    pub const SOURCE_NOT_A_DIRECTORY: &str = "source_not_a_directory";
    /// The same name twice in one source.
    pub const DUPLICATE_NAME: &str = "duplicate_name";
    /// A file in a skill that is neither file, directory nor link.
    pub const SPECIAL_FILE: &str = "special_file";
}

fn note(code: &'static str, severity: Severity, path: &Path, message: String, hint: Option<&str>) -> Diagnostic {
    Diagnostic {
        code,
        severity,
        path: path.to_owned(),
        line: None,
        column: None,
        message,
        hint: hint.map(str::to_owned),
    }
}

pub(crate) fn nested_skill(path: &Path, outer: &Path) -> Diagnostic {
    note(
        codes::NESTED_SKILL,
        Severity::Warning,
        path,
        format!("lies inside the skill {} and is not loaded", outer.display()),
        Some("move it beside the outer skill, or rename it when it is a template"),
    )
}

pub(crate) fn depth_limit(first: &Path, count: usize, max_depth: u8) -> Diagnostic {
    let others = match count - 1 {
        0 => String::new(),
        others => format!(" (and those below {others} more directories)"),
    };
    note(
        codes::DEPTH_LIMIT,
        Severity::Warning,
        first,
        format!("directories below are more than {max_depth} levels deep and were not searched{others}"),
        Some("name a directory further down as a source of its own"),
    )
}

pub(crate) fn directory_limit(path: &Path, limit: usize) -> Diagnostic {
    note(
        codes::DIRECTORY_LIMIT,
        Severity::Warning,
        path,
        format!("has more than {limit} directories; the rest was not searched"),
        Some("name the directory that holds the skills, not one above it"),
    )
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    note(
        codes::UNREADABLE,
        Severity::Error,
        path,
        format!("cannot be read: {error}"),
        match error.kind() {
            io::ErrorKind::PermissionDenied => Some("grant read access, or name another source"),
            _ => None,
        },
    )
}

pub(crate) fn not_a_file(path: &Path, what: &str) -> Diagnostic {
    note(
        codes::NOT_A_FILE,
        Severity::Error,
        path,
        format!("is {what}, not a regular file"),
        None,
    )
}

pub(crate) fn file_too_large(path: &Path, size: u64, limit: u64) -> Diagnostic {
    note(
        codes::FILE_TOO_LARGE,
        Severity::Error,
        path,
        format!("has {size} bytes, more than the {limit} that are read"),
        Some("move details into files under references/"),
    )
}

pub(crate) fn link_leaves_skill(path: &Path) -> Diagnostic {
    note(
        codes::LINK_LEAVES_SKILL,
        Severity::Error,
        path,
        "is a link that leads out of its skill; it is never followed".to_owned(),
        Some("copy the file into the skill, or link the whole skill directory"),
    )
}

pub(crate) fn dangling_link(path: &Path) -> Diagnostic {
    note(
        codes::DANGLING_LINK,
        Severity::Warning,
        path,
        "is a link that leads nowhere".to_owned(),
        Some("remove the link, or bring back what it led to"),
    )
}

pub(crate) fn link_loop(path: &Path) -> Diagnostic {
    note(
        codes::LINK_LOOP,
        Severity::Warning,
        path,
        "is a link that leads back to a directory above it; it is not followed".to_owned(),
        Some("remove the link"),
    )
}

pub(crate) fn vanished(path: &Path) -> Diagnostic {
    note(
        codes::VANISHED,
        Severity::Warning,
        path,
        "was removed while it was being read".to_owned(),
        None,
    )
}

pub(crate) fn source_missing(path: &Path) -> Diagnostic {
    note(
        codes::SOURCE_MISSING,
        Severity::Warning,
        path,
        "does not exist".to_owned(),
        Some("check the path of the source"),
    )
}

pub(crate) fn source_not_a_directory(path: &Path) -> Diagnostic {
    note(
        codes::SOURCE_NOT_A_DIRECTORY,
        Severity::Error,
        path,
        "is not a directory".to_owned(),
        Some("name the directory that holds the file"),
    )
}

pub(crate) fn duplicate_name(name: &str, winner: &Path, loser: &Path) -> Diagnostic {
    note(
        codes::DUPLICATE_NAME,
        Severity::Warning,
        loser,
        format!("has the same name {name:?} as {}, which wins", winner.display()),
        Some("rename one of them"),
    )
}

pub(crate) fn special_file(path: &Path) -> Diagnostic {
    note(
        codes::SPECIAL_FILE,
        Severity::Warning,
        path,
        "is a FIFO, a socket or a device; it is left out".to_owned(),
        None,
    )
}
