//! Reads the tools that a skill declares, in all formats in use.

use super::yaml::{Content, Node, ScalarStyle};

/// The accepted keys; the first one present is used.
pub(super) const ALLOWED_TOOLS_KEYS: [&str; 3] = ["allowed-tools", "allowed_tools", "allowedTools"];

/// The declared tools, and the errors in the declaration.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AllowedTools {
    /// `None` if the key has no value.
    pub names: Option<Vec<Box<str>>>,
    /// Offset and message of each error.
    pub errors: Vec<(usize, String)>,
}

/// Reads a text that contains names, or a list of texts. Any other value is read as an empty list, which is the safe
/// interpretation.
pub(super) fn read_allowed_tools(node: &Node<'_>) -> AllowedTools {
    let mut tools = AllowedTools::default();
    match &node.content {
        _ if node.is_null() => {}
        Content::Scalar(text, _) if is_text(node) => {
            let (names, is_closed) = split_outside_parentheses(text);
            tools.names = Some(names.into_iter().map(Into::into).collect());
            if !is_closed {
                tools.add_error(node, "a parenthesis is never closed".to_owned());
            }
        }
        Content::Sequence(items) => {
            let mut names = Vec::with_capacity(items.len());
            for item in items {
                match item.as_text().map(str::trim) {
                    Some(name) if is_text(item) && !name.is_empty() => names.push(name.into()),
                    Some(name) => tools.add_error(item, format!("`{name}` is not the name of a tool")),
                    None => tools.add_error(item, format!("{} is not the name of a tool", item.kind())),
                }
            }
            tools.names = Some(names);
        }
        _ => {
            tools.names = Some(Vec::new());
            let kind = if node.as_text().is_some() {
                "a single value"
            } else {
                node.kind()
            };
            tools.add_error(node, format!("a text or a list of texts is expected, not {kind}"));
        }
    }
    tools
}

impl AllowedTools {
    fn add_error(&mut self, node: &Node<'_>, message: String) {
        self.errors.push((node.start(), message));
    }
}

/// Whether a scalar is text according to YAML, and not a number, a boolean or null.
fn is_text(node: &Node<'_>) -> bool {
    match &node.content {
        Content::Scalar(_, ScalarStyle::Plain) => super::json::to_json(node).is_string() && !is_number(node),
        Content::Scalar(..) => true,
        _ => false,
    }
}

/// Some numbers become JSON strings to preserve their spelling; they are still numbers here.
fn is_number(node: &Node<'_>) -> bool {
    node.as_text().is_some_and(|text| text.parse::<f64>().is_ok())
}

/// Splits at blanks and commas outside of parentheses. Also returns whether every parenthesis is closed.
fn split_outside_parentheses(text: &str) -> (Vec<&str>, bool) {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut start = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_separator = depth == 0 && (c == ',' || c.is_whitespace());
        match (is_separator, start) {
            (true, Some(begin)) => {
                names.push(&text[begin..at]);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    names.extend(start.map(|begin| text[begin..].trim_end()));
    (names, depth == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::yaml::read_yaml;

    fn names(source: &str) -> Option<Vec<String>> {
        let document = read_yaml(source).unwrap();
        let tools = read_allowed_tools(document.root.as_ref().unwrap());
        tools.names.map(|names| names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn tools_are_read_in_every_spelling() {
        let cases: [(&str, Option<&[&str]>); 16] = [
            ("read_file write_file", Some(&["read_file", "write_file"])),
            ("Bash  Read   Write", Some(&["Bash", "Read", "Write"])),
            ("Bash,Read,Write", Some(&["Bash", "Read", "Write"])),
            ("[Bash, Read, Write]", Some(&["Bash", "Read", "Write"])),
            ("[a, 123, true, null, ' ', 1.10, b]", Some(&["a", "b"])),
            ("[' a ', \"b \"]", Some(&["a", "b"])),
            ("['123']", Some(&["123"])),
            ("[]", Some(&[])),
            ("42", Some(&[])),
            ("{a: b}", Some(&[])),
            ("''", Some(&[])),
            ("~", None),
            ("Bash(git add *), Read", Some(&["Bash(git add *)", "Read"])),
            (
                "Bash(git:(a b)) Read,Write",
                Some(&["Bash(git:(a b))", "Read", "Write"]),
            ),
            ("Bash(git add Read", Some(&["Bash(git add Read"])),
            ("a) b", Some(&["a)", "b"])),
        ];
        for (source, expected) in cases {
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(names(source), expected, "{source}");
        }
    }
}
