//! Converts frontmatter to JSON by the core schema of YAML, for callers that compare it field by field.

use std::path::Path;

use serde_json::{Map, Number, Value};

use super::delimiters::{DelimiterSearch, Extent, find_delimiters};
use super::file_diagnostics::FileDiagnostics;
use super::frontmatter::with_frontmatter;
use super::json::key_text;
use super::yaml::{Content, Node};

/// Returns every field of the frontmatter by the core schema of YAML; `None` if the frontmatter is not a mapping.
///
/// Unlike in [`crate::SkillMeta`], nothing is trimmed, truncated or normalized, and numbers are numbers: `1.10` is 1.1
/// here, as in any other YAML reader.
pub fn frontmatter_json(text: &str) -> Option<Map<String, Value>> {
    let DelimiterSearch::Found(delimiters) = find_delimiters(text.as_bytes(), Extent::WholeFile) else {
        return None;
    };
    let mut ignored = FileDiagnostics::new(Path::new(""), text);
    let yaml = &text[delimiters.yaml.clone()];
    let value = with_frontmatter(yaml, delimiters.yaml.start, &mut ignored, |frontmatter, _| {
        frontmatter.root.as_ref().map(core_json)
    });
    match value.flatten()? {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn core_json(node: &Node<'_>) -> Value {
    match &node.content {
        Content::Scalar(..) if node.is_null() => Value::Null,
        Content::Scalar(text, _) => match node.as_plain() {
            Some("true" | "True" | "TRUE") => Value::Bool(true),
            Some("false" | "False" | "FALSE") => Value::Bool(false),
            Some(plain) => core_number(plain).map_or_else(|| Value::String(plain.to_owned()), Value::Number),
            None => Value::String(text.to_string()),
        },
        Content::Sequence(items) => Value::Array(items.iter().map(core_json).collect()),
        Content::Mapping(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| (key_text(key), core_json(value)));
            Value::Object(pairs.collect())
        }
    }
}

/// Parses a number of the core schema. Numbers that JSON cannot represent stay text.
fn core_number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts_like_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let has_digit = unsigned.contains(|c: char| c.is_ascii_digit());
    let has_only_number_chars = unsigned.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if !(starts_like_number && has_digit && has_only_number_chars) {
        return None;
    }
    if unsigned.chars().all(|c| c.is_ascii_digit())
        && let Ok(number) = text.parse::<i64>()
    {
        return Some(number.into());
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_follow_the_core_schema() {
        let text = "---\nname: a\ndescription: '  two  '\nversion: 1.10\nn: 007\nhex: 0x1F\ndate: 2026-01-02\n\
                    empty:\non: yes\nlist: [1, two, true]\nmetadata:\n  k: \"1\"\n---\nbody\n";
        let expected = json!({
            "name": "a", "description": "  two  ", "version": 1.1, "n": 7, "hex": 31, "date": "2026-01-02",
            "empty": null, "on": "yes", "list": [1, "two", true], "metadata": {"k": "1"},
        });
        assert_eq!(Value::Object(frontmatter_json(text).unwrap()), expected);
        assert!(frontmatter_json("no frontmatter").is_none());
        assert!(frontmatter_json("---\n- a\n---\n").is_none());
    }
}
