//! Frontmatter as every YAML reader understands it, for others who compare it field by field.

use std::path::Path;

use serde_json::{Map, Number, Value};

use super::findings::Findings;
use super::json::key_text;
use super::source::with_frontmatter;
use crate::frontmatter::{Extent, Located, locate};
use crate::node::{Content, Node};

/// Every field of a SKILL.md's frontmatter, by the core schema of YAML; nothing where it is not a mapping.
///
/// Unlike [`crate::SkillMeta`], nothing is trimmed, cut or brought into one form, and numbers are numbers: `1.10` is
/// 1.1 here, because it is for whoever reads the same file with a YAML reader of their own.
pub fn frontmatter_json(text: &str) -> Option<Map<String, Value>> {
    let Located::Found(fences) = locate(text.as_bytes(), Extent::Whole) else {
        return None;
    };
    let mut unheard = Findings::new(Path::new(""), text);
    let yaml = &text[fences.yaml.clone()];
    let read = with_frontmatter(yaml, fences.yaml.start, &mut unheard, |frontmatter, _| {
        frontmatter.root.as_ref().map(core_json)
    });
    match read.flatten()? {
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

/// The numbers of the core schema. Those that JSON cannot carry stay texts.
fn core_number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts_like_one = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let has_digit = unsigned.contains(|c: char| c.is_ascii_digit());
    let is_plain = unsigned.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if !(starts_like_one && has_digit && is_plain) {
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
    fn fields_are_what_any_yaml_reader_sees() {
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
