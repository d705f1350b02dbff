//! The findings of discovery: one constructor each, with its message and hint.

use std::io;
use std::path::Path;

use skillbox_model::Diagnostic;

use crate::parse_code::ParseCode;
use crate::scan_code::ScanCode;

fn note(code: ScanCode, path: &Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic {
        code: code.as_str(),
        severity: code.severity(),
        path: path.to_owned(),
        line: None,
        column: None,
        message: message.into(),
        hint: None,
    }
}

fn with_hint(mut note: Diagnostic, hint: &str) -> Diagnostic {
    note.hint = Some(hint.to_owned());
    note
}

pub(crate) fn source_missing(path: &Path) -> Diagnostic {
    let note = note(ScanCode::SourceMissing, path, "the source does not exist");
    with_hint(note, "check its path")
}

pub(crate) fn source_not_a_directory(path: &Path) -> Diagnostic {
    let note = note(ScanCode::SourceNotADirectory, path, "the source is not a directory");
    with_hint(note, "name the directory that holds the file")
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    let note = note(ScanCode::Unreadable, path, format!("cannot be read: {error}"));
    match error.kind() {
        io::ErrorKind::PermissionDenied => with_hint(note, "grant read access, or name another source"),
        _ => note,
    }
}

pub(crate) fn not_a_file(path: &Path, what: &str) -> Diagnostic {
    note(ScanCode::NotAFile, path, format!("is {what}, not a regular file"))
}

pub(crate) fn too_large(path: &Path, size: u64, limit: u64) -> Diagnostic {
    let message = format!("the file has {size} bytes, more than the {limit} that are read");
    let note = ParseCode::TooLarge.finding(path, message);
    with_hint(note, "move details to files under `references/`")
}

pub(crate) fn link_leaves_skill(path: &Path) -> Diagnostic {
    let message = "is a link that leads out of its skill; it is never followed";
    let note = note(ScanCode::LinkLeavesSkill, path, message);
    with_hint(
        note,
        "copy the file into the skill, or link the whole directory of the skill",
    )
}

pub(crate) fn dangling_link(path: &Path) -> Diagnostic {
    let note = note(ScanCode::DanglingLink, path, "is a link that leads nowhere");
    with_hint(note, "remove the link, or bring back what it led to")
}

pub(crate) fn link_loop(path: &Path) -> Diagnostic {
    let message = "is a link that leads back to where it came from; it is not followed";
    with_hint(note(ScanCode::LinkLoop, path, message), "remove the link")
}

pub(crate) fn vanished(path: &Path) -> Diagnostic {
    note(ScanCode::Vanished, path, "was removed while it was being read")
}

pub(crate) fn nested_skill(path: &Path, outer: &Path) -> Diagnostic {
    let message = format!("lies inside the skill {} and is not loaded", outer.display());
    let note = note(ScanCode::NestedSkill, path, message);
    with_hint(
        note,
        "move it beside the outer skill, or rename it when it is a template",
    )
}

pub(crate) fn duplicate_name(name: &str, winner: &Path, loser: &Path) -> Diagnostic {
    let message = format!("has the same name {name:?} as {}, which wins", winner.display());
    with_hint(note(ScanCode::DuplicateName, loser, message), "rename one of them")
}

pub(crate) fn depth_limit(first: &Path, count: usize, max_depth: u8) -> Diagnostic {
    let others = match count.saturating_sub(1) {
        0 => String::new(),
        others => format!("; so it is with {others} more"),
    };
    let message = format!("has directories more than {max_depth} levels deep, which were not searched{others}");
    let note = note(ScanCode::DepthLimit, first, message);
    with_hint(note, "name a directory further down as a source of its own")
}

pub(crate) fn directory_limit(path: &Path, limit: usize) -> Diagnostic {
    let message = format!("has more than {limit} directories; the rest was not searched");
    let note = note(ScanCode::DirectoryLimit, path, message);
    with_hint(note, "name the directory that holds the skills, not one above it")
}

pub(crate) fn special_file(path: &Path) -> Diagnostic {
    let message = "is a FIFO, a socket or a device; it is left out";
    note(ScanCode::SpecialFile, path, message)
}

pub(crate) fn hidden_by_workspace(path: &Path, name: &str) -> Diagnostic {
    let message = format!("is hidden when the skill runs: `{name}` then leads to the workspace's own");
    with_hint(note(ScanCode::HiddenByWorkspace, path, message), "rename it")
}

pub(crate) fn deep_reference(path: &Path) -> Diagnostic {
    let message = "lies more than one level below `references/`, where readers seldom look";
    let note = note(ScanCode::DeepReference, path, message);
    with_hint(note, "keep references one level deep, linked from SKILL.md")
}
