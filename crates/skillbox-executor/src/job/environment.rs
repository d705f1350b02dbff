//! The clean environment of a run.

use std::collections::BTreeMap;

use skillbox_model::{RunId, SkillName};

use super::RequestError;
use crate::workspace::layout;

/// Variables that say where things are; a request that changed them would make every path a lie.
const OURS: [&str; 7] = [
    "WORKSPACE_DIR",
    "SKILLS_DIR",
    "WORK_DIR",
    "OUTPUT_DIR",
    "RUN_DIR",
    "SKILL_NAME",
    "SKILL_DIR",
];

/// Longest `NAME=value` that the kernel passes to a program.
const MAX_ENTRY: usize = 128 << 10;
/// What all variables of a request may have together, well below the kernel's limit for argv and environment.
const MAX_TOTAL: usize = 1 << 20;

/// Checks the variables of a request.
pub(super) fn check(env: &BTreeMap<String, String>) -> Result<(), RequestError> {
    let mut total = 0;
    for (name, value) in env {
        let field = || format!("env.{}", name.escape_debug());
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            let message = "a variable's name has letters, digits and `_`, and starts with no digit";
            return Err(RequestError::invalid(field(), message));
        }
        if OURS.contains(&name.as_str()) {
            return Err(RequestError::invalid(
                field(),
                "this variable is set by skillbox and cannot be changed",
            ));
        }
        if value.contains('\0') {
            return Err(RequestError::invalid(field(), "the value contains a NUL byte"));
        }
        let size = name.len() + value.len() + 2;
        total += size;
        if size > MAX_ENTRY || total > MAX_TOTAL {
            return Err(
                RequestError::invalid(field(), "the value is too long for the kernel to pass on")
                    .with_hint("pass large data as an input or on stdin"),
            );
        }
    }
    Ok(())
}

/// The variables of every run, before those of the profile and of the request.
pub(crate) fn base(skill: &SkillName, run_id: &RunId) -> BTreeMap<String, String> {
    let below = |path: &str| format!("{}/{path}", layout::ROOT);
    [
        ("WORKSPACE_DIR", layout::ROOT.to_owned()),
        ("SKILLS_DIR", below(layout::SKILLS)),
        ("WORK_DIR", below(layout::WORK)),
        ("OUTPUT_DIR", below(layout::OUT)),
        ("RUN_DIR", below(&layout::run_directory(run_id))),
        ("SKILL_NAME", skill.to_string()),
        ("SKILL_DIR", below(&layout::skill_directory(skill))),
        ("HOME", below(layout::HOME)),
        ("TMPDIR", below(layout::TMP)),
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_ours_stay_ours() {
        let one = |name: &str, value: &str| check(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        for name in ["A", "_x", "LD_PRELOAD", "PATH", "a1"] {
            assert!(one(name, "v").is_ok(), "{name}");
        }
        for name in ["", "1a", "A=B", "a b", "X; curl #", "A\n", "é", "OUTPUT_DIR"] {
            assert!(one(name, "v").is_err(), "{name:?}");
        }
        assert!(one("A", "x\0y").is_err());
        assert!(one("A", &"x".repeat(MAX_ENTRY)).is_err());
        assert_eq!(one("1a", "v").unwrap_err().field, "env.1a");
    }
}
