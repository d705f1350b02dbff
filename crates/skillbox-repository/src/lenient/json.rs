//! Writes nodes as JSON without losing a character of their scalars.

use serde_json::{Map, Number, Value};

use crate::node::{Content, Node};

/// The value as JSON.
///
/// A plain scalar becomes null or a boolean as YAML says, and a number where JSON spells it with the same
/// characters. Everything else is a string: `1.10`, `0x1F`, `1e3`, dates and numbers too long for a machine
/// would come back changed.
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

/// The text of a key; a collection as key is written as JSON.
pub(super) fn key_text(key: &Node<'_>) -> String {
    key.as_text().map_or_else(|| spelled(key), str::to_owned)
}

/// A scalar's own text, or a collection as JSON text in which numbers keep their source spelling.
pub(super) fn spelled(node: &Node<'_>) -> String {
    match &node.content {
        Content::Scalar(text, _) => text.to_string(),
        _ => {
            let mut out = String::new();
            write_spelled(node, &mut out);
            out
        }
    }
}

fn write_spelled(node: &Node<'_>, out: &mut String) {
    let separated = |at: usize, out: &mut String| out.push_str(if at == 0 { "" } else { "," });
    match &node.content {
        Content::Scalar(text, _) => match node.as_plain() {
            // What is JSON already stays as it was written.
            Some(plain) if !plain.is_empty() && is_json_literal(plain) => out.push_str(plain),
            _ if node.is_null() => out.push_str("null"),
            _ => write_string(text, out),
        },
        Content::Sequence(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separated(at, out);
                write_spelled(item, out);
            }
            out.push(']');
        }
        Content::Mapping(pairs) => {
            out.push('{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                separated(at, out);
                write_string(&key_text(key), out);
                out.push(':');
                write_spelled(value, out);
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
    use crate::yaml;

    #[test]
    fn scalars_keep_their_characters() {
        let source = "a: 1.0\nb: 1.10\nc: 0x1F\nd: 'true'\ne: True\nf: ~\ng: 2024-01-01\nh: 12345678901234567890123\n\
                      i: [1, -2, x]\nj: {k: no, l: }\n";
        let document = yaml::read(source).unwrap();
        let json = to_json(document.root.as_ref().unwrap());
        assert_eq!(
            json.to_string(),
            r#"{"a":1.0,"b":"1.10","c":"0x1F","d":"true","e":true,"f":null,"g":"2024-01-01","h":"12345678901234567890123","i":[1,-2,"x"],"j":{"k":"no","l":null}}"#
        );
    }

    #[test]
    fn nested_values_are_spelled_as_written() {
        let source = "{\"requires\": {\"bins\": [\"curl\"]}, version: 1.10, ok: yes, none: ~, n: 1e3}";
        let document = yaml::read(source).unwrap();
        assert_eq!(
            spelled(document.root.as_ref().unwrap()),
            r#"{"requires":{"bins":["curl"]},"version":1.10,"ok":"yes","none":null,"n":1e3}"#
        );
    }
}
