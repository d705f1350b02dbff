//! Reads all of YAML with the YAML library. This is the only module that uses it.

use std::collections::{HashMap, HashSet};

use serde_yaml::granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle as Style, ScanError, Span, StructureStyle, Tag, options,
};

use super::duplicate_keys::remove_duplicate_keys;
use super::error::{MAX_ALIASES, MAX_DEPTH, MAX_NODES, YamlError, YamlErrorKind};
use super::node::{Content, Document, Node, ScalarStyle};

/// Reads the only document of a text with the YAML library.
pub(super) fn read_with_library(text: &str) -> Result<Document<'_>, YamlError> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = NodeBuilder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax_error(text, &error))?;
        let offset = byte_offset(text, &span);
        builder
            .add_event(event, &span, offset)
            .map_err(|kind| YamlError { offset, kind })?;
    }
    Ok(Document {
        root: builder.root,
        duplicate_keys: builder.duplicate_keys,
    })
}

/// Builds nodes from parser events with an explicit stack, so that nesting does not use the call stack.
#[derive(Default)]
struct NodeBuilder<'a> {
    root: Option<Node<'a>>,
    duplicate_keys: Vec<usize>,
    open_collections: Vec<OpenCollection<'a>>,
    /// Complete nodes that have an anchor, each with its number of nodes.
    anchors: HashMap<usize, (Node<'a>, usize)>,
    node_count: usize,
    alias_count: usize,
    document_count: usize,
}

/// A collection whose end has not been reached.
struct OpenCollection<'a> {
    is_mapping: bool,
    is_block: bool,
    anchor: usize,
    start: usize,
    /// The number of nodes of the document before this one.
    nodes_before: usize,
    /// In a mapping, keys and values alternate.
    children: Vec<Node<'a>>,
}

impl<'a> NodeBuilder<'a> {
    fn add_event(&mut self, event: Event<'a>, span: &Span, offset: usize) -> Result<(), YamlErrorKind> {
        let end = span.end.byte_offset().unwrap_or(offset).max(offset);
        match event {
            Event::DocumentStart(..) => {
                self.document_count += 1;
                if self.document_count > 1 {
                    return Err(YamlErrorKind::SecondDocument);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let style = scalar_style(style, tag.as_deref())?;
                // The library returns `~` where the source is empty.
                let text = if offset == end && style == ScalarStyle::Plain {
                    "".into()
                } else {
                    text
                };
                self.count_nodes(1)?;
                self.add_node(Node::new(Content::Scalar(text, style), offset..end), anchor, 1)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.open_collection(false, style, anchor, tag.as_deref(), offset)?
            }
            Event::MappingStart(style, anchor, tag) => {
                self.open_collection(true, style, anchor, tag.as_deref(), offset)?
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(end)?,
            Event::Alias(anchor) => self.add_alias(anchor)?,
            _ => {}
        }
        Ok(())
    }

    fn count_nodes(&mut self, nodes: usize) -> Result<(), YamlErrorKind> {
        self.node_count += nodes;
        if self.node_count > MAX_NODES {
            Err(YamlErrorKind::TooManyNodes)
        } else {
            Ok(())
        }
    }

    fn open_collection(
        &mut self,
        is_mapping: bool,
        style: StructureStyle,
        anchor: usize,
        tag: Option<&Tag>,
        start: usize,
    ) -> Result<(), YamlErrorKind> {
        reject_application_tag(tag)?;
        let nodes_before = self.node_count;
        self.count_nodes(1)?;
        if self.open_collections.len() >= MAX_DEPTH {
            return Err(YamlErrorKind::TooDeep);
        }
        self.open_collections.push(OpenCollection {
            is_mapping,
            is_block: style == StructureStyle::Block,
            anchor,
            start,
            nodes_before,
            children: Vec::new(),
        });
        Ok(())
    }

    fn close_collection(&mut self, end: usize) -> Result<(), YamlErrorKind> {
        let Some(open) = self.open_collections.pop() else {
            return Ok(());
        };
        // A block collection ends with its last value, but its end event comes after blank lines and comments.
        let end = match open.children.last() {
            Some(last) if open.is_block => last.span().end,
            _ => end,
        };
        let start = match open.children.first() {
            Some(first) if open.is_block => first.start(),
            _ => open.start,
        };
        let content = if open.is_mapping {
            Content::Mapping(self.build_pairs(open.children))
        } else {
            Content::Sequence(open.children)
        };
        let size = self.node_count - open.nodes_before;
        self.add_node(Node::new(content, start..end.max(start)), open.anchor, size)
    }

    fn add_alias(&mut self, anchor: usize) -> Result<(), YamlErrorKind> {
        self.alias_count += 1;
        if self.alias_count > MAX_ALIASES {
            return Err(YamlErrorKind::TooManyAliases);
        }
        // The limit is checked before the nodes are copied.
        let size = self.anchors.get(&anchor).ok_or(YamlErrorKind::AliasCycle)?.1;
        self.count_nodes(size)?;
        let node = self.anchors[&anchor].0.clone();
        self.add_to_parent(node);
        Ok(())
    }

    fn add_node(&mut self, node: Node<'a>, anchor: usize, size: usize) -> Result<(), YamlErrorKind> {
        if anchor != 0 {
            // The copy that is stored for aliases counts too: nested anchors store the innermost node many times.
            self.count_nodes(size)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.add_to_parent(node);
        Ok(())
    }

    fn add_to_parent(&mut self, node: Node<'a>) {
        match self.open_collections.last_mut() {
            Some(open) => open.children.push(node),
            None => self.root = Some(node),
        }
    }

    /// Pairs keys with values, applies merge keys and removes keys that a later, equal key replaces.
    fn build_pairs(&mut self, children: Vec<Node<'a>>) -> Vec<(Node<'a>, Node<'a>)> {
        let mut pairs = Vec::with_capacity(children.len() / 2);
        let mut merged = Vec::new();
        let mut children = children.into_iter();
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            match (key.as_plain(), value) {
                (Some("<<"), value) if is_mergeable(&value) => merged.push(value),
                (_, value) => pairs.push((key, value)),
            }
        }
        remove_duplicate_keys(&mut pairs, &mut self.duplicate_keys);
        for value in merged {
            merge_into(&mut pairs, value);
        }
        pairs
    }
}

fn is_mergeable(value: &Node<'_>) -> bool {
    let is_mapping = |node: &Node<'_>| matches!(node.content, Content::Mapping(_));
    match &value.content {
        Content::Sequence(items) => !items.is_empty() && items.iter().all(is_mapping),
        _ => is_mapping(value),
    }
}

/// Adds the pairs of a mapping, or of each mapping in a list, whose keys are missing.
fn merge_into<'a>(pairs: &mut Vec<(Node<'a>, Node<'a>)>, value: Node<'a>) {
    match value.content {
        Content::Mapping(more) => {
            let own: HashSet<String> = pairs
                .iter()
                .filter_map(|(key, _)| key.as_text().map(str::to_owned))
                .collect();
            pairs.extend(
                more.into_iter()
                    .filter(|(key, _)| key.as_text().is_none_or(|text| !own.contains(text))),
            );
        }
        Content::Sequence(items) => items.into_iter().for_each(|item| merge_into(pairs, item)),
        Content::Scalar(..) => {}
    }
}

fn scalar_style(style: Style, tag: Option<&Tag>) -> Result<ScalarStyle, YamlErrorKind> {
    reject_application_tag(tag)?;
    Ok(match (style, tag.map(Tag::suffix)) {
        (_, Some("str" | "")) => ScalarStyle::Quoted,
        (_, Some(_)) | (Style::Plain, None) => ScalarStyle::Plain,
        (Style::Literal | Style::Folded, None) => ScalarStyle::Block,
        _ => ScalarStyle::Quoted,
    })
}

/// Rejects tags other than the seven core tags of YAML: only the application that defines a tag can interpret it.
fn reject_application_tag(tag: Option<&Tag>) -> Result<(), YamlErrorKind> {
    let Some(tag) = tag else { return Ok(()) };
    let is_core = tag.handle() == "tag:yaml.org,2002:"
        && matches!(tag.suffix(), "str" | "int" | "float" | "bool" | "null" | "map" | "seq");
    let is_non_specific = tag.handle() == "!" && tag.suffix().is_empty();
    if is_core || is_non_specific {
        return Ok(());
    }
    let written = [tag.handle(), tag.suffix()].concat();
    Err(YamlErrorKind::UnsupportedTag(written.chars().take(80).collect()))
}

fn byte_offset(text: &str, span: &Span) -> usize {
    span.start.byte_offset().unwrap_or(0).min(text.len())
}

fn syntax_error(text: &str, error: &ScanError) -> YamlError {
    let marker = error.marker();
    let by_characters = || text.char_indices().nth(marker.index()).map_or(text.len(), |(at, _)| at);
    let offset = marker.byte_offset().unwrap_or_else(by_characters).min(text.len());
    let kind = match error.kind() {
        ErrorKind::RecursionLimitExceeded => YamlErrorKind::TooDeep,
        kind => YamlErrorKind::Syntax {
            message: kind.to_string(),
            hint: hint_for(kind),
        },
    };
    YamlError { offset, kind }
}

fn hint_for(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => "put the value in quotes: it contains a colon followed by a blank",
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => "indent with blanks, not with tabs",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping => "close the bracket, or put the value in quotes if it is text",
        ErrorKind::InvalidQuotedScalarIndent => "indent the lines that continue a quoted text",
        ErrorKind::UnknownAnchor => "put the value in quotes: a leading asterisk refers to another value",
        ErrorKind::UnexpectedCharacter { .. } => "put the value in quotes, or remove the character",
        _ => return None,
    })
}
