//! The environment of a run. It inherits nothing from the server.

use std::collections::BTreeMap;

use skillbox_model::{RunId, SkillName};

use super::RequestError;
use crate::layout;

/// Variables that name the skill and the directories of the workspace. A request cannot change them, because their
/// values would then be wrong.
const RESERVED_VARIABLES: [&str; 8] = [
    "WORKSPACE_DIR",
    "SKILLS_DIR",
    "WORK_DIR",
    "OUTPUT_DIR",
    "RUN_DIR",
    "SKILL_NAME",
    "SKILL_DIR",
    "CLAUDE_SKILL_DIR",
];

/// The longest `NAME=value` that the kernel accepts (MAX_ARG_STRLEN, execve(2)).
const MAX_ENTRY_BYTES: usize = 128 << 10;
/// The maximum size of all variables of a request together, well below the kernel's limit for argv and environment.
const MAX_TOTAL_BYTES: usize = 1 << 20;

/// Checks the variables of a request.
pub(super) fn check_variables(env: &BTreeMap<String, String>) -> Result<(), RequestError> {
    let mut total = 0;
    for (name, value) in env {
        let field = || format!("env.{}", name.escape_debug());
        let is_valid_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_valid_name {
            let message = "a variable name consists of letters, digits and `_`, and does not start with a digit";
            return Err(RequestError::invalid(field(), message));
        }
        if RESERVED_VARIABLES.contains(&name.as_str()) {
            return Err(RequestError::invalid(
                field(),
                "skillbox sets this variable; a request cannot change it",
            ));
        }
        if value.contains('\0') {
            return Err(RequestError::invalid(field(), "the value contains a NUL byte"));
        }
        let size = name.len() + value.len() + 2;
        total += size;
        if size > MAX_ENTRY_BYTES || total > MAX_TOTAL_BYTES {
            return Err(
                RequestError::invalid(field(), "the value exceeds the kernel's size limit")
                    .with_hint("pass large data as an input or on stdin"),
            );
        }
    }
    Ok(())
}

/// The variables of every run. Variables of the profile and of the request override them, but a request cannot override
/// the reserved ones.
pub(crate) fn base_environment(skill: &SkillName, run_id: &RunId) -> BTreeMap<String, String> {
    let below = |path: &str| format!("{}/{path}", layout::ROOT);
    [
        ("WORKSPACE_DIR", layout::ROOT.to_owned()),
        ("SKILLS_DIR", below(layout::SKILLS)),
        ("WORK_DIR", below(layout::WORK)),
        ("OUTPUT_DIR", below(layout::OUT)),
        ("RUN_DIR", below(&layout::run_directory(run_id))),
        ("SKILL_NAME", skill.to_string()),
        ("SKILL_DIR", below(&layout::skill_directory(skill))),
        ("CLAUDE_SKILL_DIR", below(&layout::skill_directory(skill))),
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
    fn invalid_and_reserved_names_are_refused() {
        let one = |name: &str, value: &str| check_variables(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        for name in ["A", "_x", "LD_PRELOAD", "PATH", "a1"] {
            assert!(one(name, "v").is_ok(), "{name}");
        }
        for name in ["", "1a", "A=B", "a b", "X; curl #", "A\n", "é", "OUTPUT_DIR"] {
            assert!(one(name, "v").is_err(), "{name:?}");
        }
        assert!(one("A", "x\0y").is_err());
        assert!(one("A", &"x".repeat(MAX_ENTRY_BYTES)).is_err());
        assert_eq!(one("1a", "v").unwrap_err().field, "env.1a");
    }
}
