//! The workspace's variables, as callers may write them in paths and globs.

use skillbox_model::RunId;

use crate::workspace::layout;

/// A text cut into the directory that a leading variable names and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Anchored<'a> {
    /// No variable in front.
    Plain(&'a str),
    /// Below a directory of the workspace; empty is the workspace itself.
    Below { directory: String, rest: &'a str },
    /// A `$` in front that is none of ours.
    UnknownVariable(&'a str),
}

/// Resolves `$OUTPUT_DIR/x`, `${OUTPUT_DIR}/x` and `/workspace/out/x` alike.
pub(crate) fn anchor<'a>(text: &'a str, run_id: &RunId) -> Anchored<'a> {
    if let Some(rest) = text.strip_prefix(layout::ROOT) {
        if rest.is_empty() {
            return below("", rest);
        }
        if let Some(rest) = rest.strip_prefix('/') {
            return below("", rest);
        }
    }
    let Some(after_dollar) = text.strip_prefix('$') else {
        return Anchored::Plain(text);
    };
    let (name, rest) = match after_dollar.strip_prefix('{') {
        Some(braced) => match braced.split_once('}') {
            Some(parts) => parts,
            None => return Anchored::UnknownVariable(text),
        },
        None => {
            // The whole identifier is the name: `$OUTPUT_DIRX` is not `$OUTPUT_DIR` and an X.
            let end = after_dollar
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(after_dollar.len());
            after_dollar.split_at(end)
        }
    };
    let rest = match rest.strip_prefix('/') {
        Some(below) => below,
        None if rest.is_empty() => rest,
        None => return Anchored::UnknownVariable(text),
    };
    match name {
        "WORKSPACE_DIR" => below("", rest),
        "SKILLS_DIR" => below(layout::SKILLS, rest),
        "WORK_DIR" => below(layout::WORK, rest),
        "OUTPUT_DIR" => below(layout::OUT, rest),
        "RUN_DIR" => below(&layout::run_directory(run_id), rest),
        _ => Anchored::UnknownVariable(text),
    }
}

fn below<'a>(directory: &str, rest: &'a str) -> Anchored<'a> {
    Anchored::Below {
        directory: directory.to_owned(),
        rest,
    }
}

/// Puts a rest below a directory, either of which may be empty.
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
            let Anchored::Below { directory, rest } = anchor(text, &run) else {
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
            assert_eq!(anchor(text, &run), Anchored::UnknownVariable(text), "{text}");
        }
        assert_eq!(anchor("/workspaces/x", &run), Anchored::Plain("/workspaces/x"));
    }
}
