//! Turns nodes into the values that the reference tool works with.

use std::collections::HashSet;

use super::parser;
use super::scanner::Refusal;
use crate::node::{Content, Node};

/// A value as the reference tool sees it: every scalar is a text in source spelling.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// A plain `=` or `<<`, which the reference does not take for a text.
    Odd(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// Reads frontmatter; nothing where it is not a mapping.
pub(super) fn load(text: &str) -> Result<Option<Vec<(String, Value)>>, Refusal> {
    let Some(node) = parser::parse(text)? else {
        return Ok(None);
    };
    match construct(&node, text, Level::Root)? {
        Value::Map(pairs) => Ok(Some(pairs)),
        _ => Ok(None),
    }
}

/// Merged keys vanish in the outermost mapping and are appended in the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Nested,
}

fn construct(node: &Node<'_>, text: &str, level: Level) -> Result<Value, Refusal> {
    match &node.content {
        Content::Scalar(scalar, _) if matches!(node.as_plain(), Some("=" | "<<")) => Ok(Value::Odd(scalar.to_string())),
        Content::Scalar(scalar, _) => Ok(Value::Text(scalar.to_string())),
        Content::Sequence(items) => {
            let items = items.iter().map(|item| construct(item, text, Level::Nested));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        Content::Mapping(pairs) => mapping(pairs, text, level).map(Value::Map),
    }
}

fn mapping(pairs: &[(Node<'_>, Node<'_>)], text: &str, level: Level) -> Result<Vec<(String, Value)>, Refusal> {
    let is_merge = |key: &Node<'_>| key.as_plain() == Some("<<");
    let mut merged = Vec::new();
    let mut has_merge = false;
    for (key, value) in pairs.iter().filter(|(key, _)| is_merge(key)) {
        if has_merge {
            return refuse(key, "a second merge key");
        }
        has_merge = true;
        merged = merge_sources(value, text)?;
    }
    let mut own = Vec::with_capacity(pairs.len());
    let mut seen = HashSet::with_capacity(pairs.len());
    for (key, value) in pairs.iter().filter(|(key, _)| !is_merge(key)) {
        let Content::Scalar(name, _) = &key.content else {
            return refuse(key, "a list or a mapping cannot be a key");
        };
        let value = construct(value, text, Level::Nested)?;
        if !seen.insert(name.as_ref()) {
            return refuse(key, "this key stands twice");
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

/// The keys that a merge adds; the first source that has a key gives its value.
fn merge_sources(value: &Node<'_>, text: &str) -> Result<Vec<(String, Value)>, Refusal> {
    let sources = match &value.content {
        Content::Mapping(_) => std::slice::from_ref(value),
        Content::Sequence(items) => items,
        Content::Scalar(..) => return refuse(value, "only a mapping can be merged"),
    };
    let mut merged = Vec::new();
    let mut seen = HashSet::new();
    for source in sources {
        let Value::Map(pairs) = construct(source, text, Level::Nested)? else {
            return refuse(source, "only a mapping can be merged");
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
fn check_indentation<'a, 'n: 'a>(values: impl Iterator<Item = &'a Node<'n>>, text: &str) -> Result<(), Refusal> {
    let mut common = None;
    for value in values.filter(|value| matches!(value.content, Content::Mapping(_))) {
        let column = column(text, value.start());
        if *common.get_or_insert(column) != column {
            return refuse(value, "mappings at the same level are indented differently");
        }
    }
    Ok(())
}

/// The column as the scanner counts it: from the last line feed, byte order marks not counted.
fn column(text: &str, offset: usize) -> usize {
    let line = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    text[line..offset].chars().filter(|c| *c != '\u{feff}').count()
}

fn refuse<T>(node: &Node<'_>, message: &'static str) -> Result<T, Refusal> {
    Err(Refusal {
        offset: node.start(),
        message: message.into(),
    })
}
