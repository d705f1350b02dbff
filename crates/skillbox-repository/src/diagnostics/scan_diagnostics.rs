//! The diagnostics of a scan: one function each, with its message and hint.

use std::io;
use std::path::Path;

use skillbox_model::Diagnostic;

use super::codes::{ParseCode, ScanCode};
use super::new_diagnostic::{Code, Hint, Position, new_diagnostic};

fn whole_file_diagnostic(
    code: impl Into<Code>,
    path: &Path,
    message: impl Into<String>,
    hint: impl Into<Hint>,
) -> Diagnostic {
    new_diagnostic(code, path, Position::WholeFile, message, hint)
}

pub(crate) fn source_missing(path: &Path) -> Diagnostic {
    whole_file_diagnostic(
        ScanCode::SourceMissing,
        path,
        "the source does not exist",
        "check its path",
    )
}

pub(crate) fn source_not_a_directory(path: &Path) -> Diagnostic {
    let hint = "pass the directory that contains the file";
    whole_file_diagnostic(
        ScanCode::SourceNotADirectory,
        path,
        "the source is not a directory",
        hint,
    )
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => Some("grant read access, or use another source"),
        _ => None,
    };
    whole_file_diagnostic(ScanCode::Unreadable, path, format!("cannot be read: {error}"), hint)
}

pub(crate) fn not_a_file(path: &Path, file_type: &str) -> Diagnostic {
    let message = format!("is {file_type}, not a regular file");
    whole_file_diagnostic(ScanCode::NotAFile, path, message, ())
}

pub(crate) fn too_large(path: &Path, size: u64, limit: u64) -> Diagnostic {
    let message = format!("the file has {size} bytes; the limit is {limit}");
    whole_file_diagnostic(
        ParseCode::TooLarge,
        path,
        message,
        "move details to files under `references/`",
    )
}

pub(crate) fn link_leaves_skill(path: &Path) -> Diagnostic {
    let message = "is a link that points outside its skill; such links are never followed";
    let hint = "copy the file into the skill, or link the whole skill directory";
    whole_file_diagnostic(ScanCode::LinkLeavesSkill, path, message, hint)
}

pub(crate) fn dangling_link(path: &Path) -> Diagnostic {
    let message = "is a link whose target does not exist";
    whole_file_diagnostic(
        ScanCode::DanglingLink,
        path,
        message,
        "remove the link, or restore its target",
    )
}

pub(crate) fn link_loop(path: &Path) -> Diagnostic {
    let message = "is a link that points back to itself or to a directory above it; it is not followed";
    whole_file_diagnostic(ScanCode::LinkLoop, path, message, "remove the link")
}

pub(crate) fn vanished(path: &Path) -> Diagnostic {
    whole_file_diagnostic(ScanCode::Vanished, path, "was removed while it was being read", ())
}

pub(crate) fn nested_skill(path: &Path, outer: &Path) -> Diagnostic {
    let message = format!(
        "is inside the skill {}; it is a skill of its own, and also part of that skill",
        outer.display()
    );
    let hint = "rename the file if it is only a template";
    whole_file_diagnostic(ScanCode::NestedSkill, path, message, hint)
}

pub(crate) fn duplicate_name(name: &str, used: &Path, shadowed: &Path) -> Diagnostic {
    let message = format!(
        "has the same name {name:?} as {}, which is used instead",
        used.display()
    );
    whole_file_diagnostic(ScanCode::DuplicateName, shadowed, message, "rename one of them")
}

pub(crate) fn depth_limit(first: &Path, count: usize, max_depth: u8) -> Diagnostic {
    let others = match count.saturating_sub(1) {
        0 => String::new(),
        others => format!("; the same applies to {others} more"),
    };
    let message = format!("has directories more than {max_depth} levels deep, which were not searched{others}");
    whole_file_diagnostic(
        ScanCode::DepthLimit,
        first,
        message,
        "add a deeper directory as a source of its own",
    )
}

pub(crate) fn directory_limit(path: &Path, limit: usize) -> Diagnostic {
    let message = format!("has more than {limit} directories; the others were not searched");
    let hint = "use the directory that contains the skills, not one above it";
    whole_file_diagnostic(ScanCode::DirectoryLimit, path, message, hint)
}

pub(crate) fn special_file(path: &Path) -> Diagnostic {
    let message = "is a FIFO, a socket or a device; it is ignored";
    whole_file_diagnostic(ScanCode::SpecialFile, path, message, ())
}

pub(crate) fn hidden_by_workspace(path: &Path, name: &str) -> Diagnostic {
    let message = format!("is hidden when the skill runs: `{name}` then refers to the workspace's own entry");
    whole_file_diagnostic(ScanCode::HiddenByWorkspace, path, message, "rename it")
}

pub(crate) fn deep_reference(path: &Path) -> Diagnostic {
    let message = "is more than one level below `references/`, where agents rarely look";
    let hint = "keep references one level deep, linked from SKILL.md";
    whole_file_diagnostic(ScanCode::DeepReference, path, message, hint)
}
