//! Resolves the workspace variables that callers may use at the start of paths and globs.

use skillbox_model::RunId;

use crate::layout;

/// The result of [`resolve_prefix`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResolvedPath<'a> {
    /// The text starts neither with a variable nor with `/workspace`.
    Plain(&'a str),
    /// A path below a directory of the workspace. An empty `directory` is the workspace itself.
    Below { directory: String, rest: &'a str },
    /// The text starts with `$` and an unknown variable.
    UnknownVariable(&'a str),
}

/// Resolves a leading variable or `/workspace`. `$OUTPUT_DIR/x`, `${OUTPUT_DIR}/x` and `/workspace/out/x` give the same
/// path.
pub(crate) fn resolve_prefix<'a>(text: &'a str, run_id: &RunId) -> ResolvedPath<'a> {
    if let Some(rest) = text.strip_prefix(layout::ROOT) {
        if rest.is_empty() {
            return below("", rest);
        }
        if let Some(rest) = rest.strip_prefix('/') {
            return below("", rest);
        }
    }
    let Some(after_dollar) = text.strip_prefix('$') else {
        return ResolvedPath::Plain(text);
    };
    let (name, rest) = match after_dollar.strip_prefix('{') {
        Some(braced) => match braced.split_once('}') {
            Some(parts) => parts,
            None => return ResolvedPath::UnknownVariable(text),
        },
        None => {
            // The name is the whole identifier: `$OUTPUT_DIRX` is not `$OUTPUT_DIR` followed by an X.
            let end = after_dollar
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(after_dollar.len());
            after_dollar.split_at(end)
        }
    };
    let rest = match rest.strip_prefix('/') {
        Some(below) => below,
        None if rest.is_empty() => rest,
        None => return ResolvedPath::UnknownVariable(text),
    };
    match name {
        "WORKSPACE_DIR" => below("", rest),
        "SKILLS_DIR" => below(layout::SKILLS, rest),
        "WORK_DIR" => below(layout::WORK, rest),
        "OUTPUT_DIR" => below(layout::OUT, rest),
        "RUN_DIR" => below(&layout::run_directory(run_id), rest),
        _ => ResolvedPath::UnknownVariable(text),
    }
}

fn below<'a>(directory: &str, rest: &'a str) -> ResolvedPath<'a> {
    ResolvedPath::Below {
        directory: directory.to_owned(),
        rest,
    }
}

/// Joins a directory and a relative path, either of which may be empty.
pub(crate) fn join(directory: &str, rest: &str) -> String {
    match (directory.is_empty(), rest.is_empty()) {
        (true, _) => rest.to_owned(),
        (_, true) => directory.to_owned(),
        _ => format!("{directory}/{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_the_root_name_the_same_directories() {
        let run = RunId::parse("r1").unwrap();
        for (text, expected) in [
            ("$OUTPUT_DIR/a", "out/a"),
            ("${OUTPUT_DIR}/a", "out/a"),
            ("$OUTPUT_DIR", "out"),
            ("/workspace/out/a", "out/a"),
            ("/workspace", ""),
            ("$RUN_DIR/x", "runs/r1/x"),
            ("$WORKSPACE_DIR", ""),
        ] {
            let ResolvedPath::Below { directory, rest } = resolve_prefix(text, &run) else {
                panic!("{text}")
            };
            assert_eq!(join(&directory, rest), expected, "{text}");
        }
        for text in [
            "$OUTPUT_DIRX",
            "$OUTPUT_DIR.x",
            "${OUTPUT_DIR",
            "${OUTPUT_DIR}x",
            "$HOME/x",
        ] {
            assert_eq!(
                resolve_prefix(text, &run),
                ResolvedPath::UnknownVariable(text),
                "{text}"
            );
        }
        assert_eq!(
            resolve_prefix("/workspaces/x", &run),
            ResolvedPath::Plain("/workspaces/x")
        );
    }
}
