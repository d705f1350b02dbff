//! Converts YAML nodes to the values that the reference tool reads.

use std::collections::HashSet;

use crate::parse::{Content, Node, PythonYamlError, parse_reference_yaml};

/// A value as the reference tool reads it: every scalar is text, as written in the source.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// A plain `=` or `<<`, which is not a text in the reference tool.
    NonText(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// Reads frontmatter; `None` if it is not a mapping.
pub(super) fn read_mapping(text: &str) -> Result<Option<Vec<(String, Value)>>, PythonYamlError> {
    let Some(node) = parse_reference_yaml(text)? else {
        return Ok(None);
    };
    match to_value(&node, text, Level::Root)? {
        Value::Map(pairs) => Ok(Some(pairs)),
        _ => Ok(None),
    }
}

/// The level of a mapping. Keys from merge keys are ignored at the root and appended at nested levels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Nested,
}

fn to_value(node: &Node<'_>, text: &str, level: Level) -> Result<Value, PythonYamlError> {
    match &node.content {
        Content::Scalar(scalar, _) if matches!(node.as_plain(), Some("=" | "<<")) => {
            Ok(Value::NonText(scalar.to_string()))
        }
        Content::Scalar(scalar, _) => Ok(Value::Text(scalar.to_string())),
        Content::Sequence(items) => {
            let items = items.iter().map(|item| to_value(item, text, Level::Nested));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        Content::Mapping(pairs) => to_pairs(pairs, text, level).map(Value::Map),
    }
}

fn to_pairs(pairs: &[(Node<'_>, Node<'_>)], text: &str, level: Level) -> Result<Vec<(String, Value)>, PythonYamlError> {
    let is_merge = |key: &Node<'_>| key.as_plain() == Some("<<");
    let mut merged = Vec::new();
    let mut has_merge = false;
    for (key, value) in pairs.iter().filter(|(key, _)| is_merge(key)) {
        if has_merge {
            return error_at(key, "a mapping has a second merge key");
        }
        has_merge = true;
        merged = merged_pairs(value, text)?;
    }
    let mut own = Vec::with_capacity(pairs.len());
    let mut seen = HashSet::with_capacity(pairs.len());
    for (key, value) in pairs.iter().filter(|(key, _)| !is_merge(key)) {
        let Content::Scalar(name, _) = &key.content else {
            return error_at(key, "a list or a mapping cannot be a key");
        };
        let value = to_value(value, text, Level::Nested)?;
        if !seen.insert(name.as_ref()) {
            return error_at(key, "this key occurs twice");
        }
        own.push((name.to_string(), value));
    }
    check_indentation(
        pairs.iter().filter(|(key, _)| !is_merge(key)).map(|(_, value)| value),
        text,
    )?;
    if level == Level::Nested {
        own.extend(merged.into_iter().filter(|(key, _)| !seen.contains(key.as_str())));
    }
    Ok(own)
}

/// Returns the pairs that a merge key adds. The first source that has a key determines its value.
fn merged_pairs(value: &Node<'_>, text: &str) -> Result<Vec<(String, Value)>, PythonYamlError> {
    let sources = match &value.content {
        Content::Mapping(_) => std::slice::from_ref(value),
        Content::Sequence(items) => items,
        Content::Scalar(..) => return error_at(value, "only a mapping can be merged"),
    };
    let mut merged = Vec::new();
    let mut seen = HashSet::new();
    for source in sources {
        let Value::Map(pairs) = to_value(source, text, Level::Nested)? else {
            return error_at(source, "only a mapping can be merged");
        };
        for (key, value) in pairs {
            if seen.insert(key.clone()) {
                merged.push((key, value));
            }
        }
    }
    Ok(merged)
}

/// All mappings among the values of one mapping must start in the same column.
fn check_indentation<'a, 'n: 'a>(
    values: impl Iterator<Item = &'a Node<'n>>,
    text: &str,
) -> Result<(), PythonYamlError> {
    let mut common = None;
    for value in values.filter(|value| matches!(value.content, Content::Mapping(_))) {
        let column = column(text, value.start());
        if *common.get_or_insert(column) != column {
            return error_at(value, "mappings at the same level are indented differently");
        }
    }
    Ok(())
}

/// The column as the scanner counts it: from the last line feed, without byte order marks.
fn column(text: &str, offset: usize) -> usize {
    let line = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    text[line..offset].chars().filter(|c| *c != '\u{feff}').count()
}

fn error_at<T>(node: &Node<'_>, message: &'static str) -> Result<T, PythonYamlError> {
    Err(PythonYamlError {
        offset: node.start(),
        message: message.into(),
    })
}
