//! Converts nodes to JSON so that every scalar keeps its characters.

use serde_json::{Map, Number, Value};

use super::yaml::{Content, Node};

/// Converts a node to JSON.
///
/// A plain scalar becomes null or a boolean as in YAML, and a number if JSON writes it with the same characters.
/// Everything else becomes a string, because a number would change `1.10`, `0x1F`, `1e3`, dates and numbers that do
/// not fit into a machine word.
pub(super) fn to_json(node: &Node<'_>) -> Value {
    match &node.content {
        Content::Scalar(..) if node.is_null() => Value::Null,
        Content::Scalar(text, _) => match node.as_plain() {
            Some("true" | "True" | "TRUE") => Value::Bool(true),
            Some("false" | "False" | "FALSE") => Value::Bool(false),
            Some(plain) => exact_number(plain).map_or_else(|| Value::String(plain.to_owned()), Value::Number),
            None => Value::String(text.to_string()),
        },
        Content::Sequence(items) => Value::Array(items.iter().map(to_json).collect()),
        Content::Mapping(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| (key_text(key), to_json(value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn exact_number(text: &str) -> Option<Number> {
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    let number: Number = serde_json::from_str(text).ok()?;
    (number.to_string() == text).then_some(number)
}

/// Returns the text of a key. A collection used as a key is written as JSON.
pub(super) fn key_text(key: &Node<'_>) -> String {
    key.as_text().map_or_else(|| to_source_text(key), str::to_owned)
}

/// Returns the text of a scalar, or a collection as JSON in which numbers keep their source spelling.
pub(super) fn to_source_text(node: &Node<'_>) -> String {
    match &node.content {
        Content::Scalar(text, _) => text.to_string(),
        _ => {
            let mut out = String::new();
            write_source_json(node, &mut out);
            out
        }
    }
}

fn write_source_json(node: &Node<'_>, out: &mut String) {
    let write_separator = |at: usize, out: &mut String| out.push_str(if at == 0 { "" } else { "," });
    match &node.content {
        Content::Scalar(text, _) => match node.as_plain() {
            // Text that is already a JSON literal stays as written.
            Some(plain) if !plain.is_empty() && is_json_literal(plain) => out.push_str(plain),
            _ if node.is_null() => out.push_str("null"),
            _ => write_string(text, out),
        },
        Content::Sequence(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                write_separator(at, out);
                write_source_json(item, out);
            }
            out.push(']');
        }
        Content::Mapping(pairs) => {
            out.push('{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                write_separator(at, out);
                write_string(&key_text(key), out);
                out.push(':');
                write_source_json(value, out);
            }
            out.push('}');
        }
    }
}

fn is_json_literal(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || serde_json::from_str::<Number>(text).is_ok()
}

fn write_string(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::yaml::read_yaml;

    #[test]
    fn scalars_preserve_their_characters() {
        let source = "a: 1.0\nb: 1.10\nc: 0x1F\nd: 'true'\ne: True\nf: ~\ng: 2024-01-01\nh: 12345678901234567890123\n\
                      i: [1, -2, x]\nj: {k: no, l: }\n";
        let document = read_yaml(source).unwrap();
        let json = to_json(document.root.as_ref().unwrap());
        assert_eq!(
            json.to_string(),
            r#"{"a":1.0,"b":"1.10","c":"0x1F","d":"true","e":true,"f":null,"g":"2024-01-01","h":"12345678901234567890123","i":[1,-2,"x"],"j":{"k":"no","l":null}}"#
        );
    }

    #[test]
    fn nested_values_keep_their_source_text() {
        let source = "{\"requires\": {\"bins\": [\"curl\"]}, version: 1.10, ok: yes, none: ~, n: 1e3}";
        let document = read_yaml(source).unwrap();
        assert_eq!(
            to_source_text(document.root.as_ref().unwrap()),
            r#"{"requires":{"bins":["curl"]},"version":1.10,"ok":"yes","none":null,"n":1e3}"#
        );
    }
}
