//! Reads YAML into nodes, within budgets. The only user of the YAML library.

use std::collections::{HashMap, HashSet};

use serde_yaml::granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle as Style, ScanError, Span, StructureStyle, Tag, options,
};

use crate::everyday_yaml;
use crate::node::{Content, Node, ScalarStyle};

/// Bytes of one document: thirty times the largest front matter seen in public skills would be 64 KiB.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Values in one document, those that aliases repeat included.
pub(crate) const MAX_NODES: usize = 10_000;
/// Collections inside collections.
pub(crate) const MAX_DEPTH: usize = 64;
/// Uses of an alias.
pub(crate) const MAX_ALIASES: usize = 100;

/// One document.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    /// Nothing for a document without content.
    pub root: Option<Node<'a>>,
    /// Where keys stand that replaced an earlier one of the same name.
    pub replacing_keys: Vec<usize>,
}

/// Why a text is no document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct YamlError {
    pub offset: usize,
    pub problem: Problem,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("{message}")]
    Syntax {
        message: String,
        hint: Option<&'static str>,
    },
    #[error("the tag `{0}` is not supported")]
    Tag(String),
    #[error("a second document begins")]
    SecondDocument,
    #[error("an alias stands inside the value that it repeats")]
    Cycle,
    #[error("more than {MAX_BYTES} bytes")]
    Bytes,
    #[error("more than {MAX_NODES} values")]
    Nodes,
    #[error("more than {MAX_DEPTH} collections inside each other")]
    Depth,
    #[error("more than {MAX_ALIASES} aliases")]
    Aliases,
}

impl Problem {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Syntax { hint, .. } => *hint,
            Self::Tag(_) => Some("remove the tag, or put the value in quotes if it is text"),
            Self::SecondDocument => Some("remove the line of three dots and what follows it"),
            Self::Cycle => Some("write the value out"),
            Self::Bytes | Self::Nodes | Self::Depth => Some("move data out of the frontmatter into a file"),
            Self::Aliases => Some("write the values out"),
        }
    }

    /// Whether the text was refused for its size and not for what it says.
    pub(crate) fn is_budget(&self) -> bool {
        matches!(self, Self::Bytes | Self::Nodes | Self::Depth | Self::Aliases)
    }
}

/// Reads the only document of a text.
///
/// Time and memory are linear in the text and bounded by the budgets. Of two equal keys the later one counts.
/// Merge keys (`<<`) and aliases are resolved.
pub(crate) fn read(text: &str) -> Result<Document<'_>, YamlError> {
    if text.len() > MAX_BYTES {
        return Err(YamlError {
            offset: 0,
            problem: Problem::Bytes,
        });
    }
    if let Some(root) = everyday_yaml::read(text) {
        return Ok(Document {
            root: Some(root),
            replacing_keys: Vec::new(),
        });
    }
    read_any(text)
}

/// Reads with the library alone.
fn read_any(text: &str) -> Result<Document<'_>, YamlError> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax_error(text, &error))?;
        let offset = byte_offset(text, &span);
        builder
            .take(event, &span, offset)
            .map_err(|problem| YamlError { offset, problem })?;
    }
    Ok(builder.document)
}

/// Builds nodes from events with a stack of its own, so that depth costs no call stack.
#[derive(Default)]
struct Builder<'a> {
    document: Document<'a>,
    open: Vec<Open<'a>>,
    /// Finished nodes that have an anchor, with the number of nodes in each.
    anchors: HashMap<usize, (Node<'a>, usize)>,
    nodes: usize,
    aliases: usize,
    documents: usize,
}

/// A collection whose end has not come yet.
struct Open<'a> {
    is_mapping: bool,
    is_block: bool,
    anchor: usize,
    start: usize,
    /// Nodes of the whole document before this one.
    nodes_before: usize,
    /// Keys and values in turn for a mapping.
    children: Vec<Node<'a>>,
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'a>, span: &Span, offset: usize) -> Result<(), Problem> {
        let end = span.end.byte_offset().unwrap_or(offset).max(offset);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Problem::SecondDocument);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let style = scalar_style(style, tag.as_deref())?;
                // The library writes `~` where the source has nothing at all.
                let text = if offset == end && style == ScalarStyle::Plain {
                    "".into()
                } else {
                    text
                };
                self.count(1)?;
                self.finish(Node::new(Content::Scalar(text, style), offset..end), anchor, 1)?;
            }
            Event::SequenceStart(style, anchor, tag) => self.open(false, style, anchor, tag.as_deref(), offset)?,
            Event::MappingStart(style, anchor, tag) => self.open(true, style, anchor, tag.as_deref(), offset)?,
            Event::SequenceEnd | Event::MappingEnd => self.close(end)?,
            Event::Alias(anchor) => self.repeat(anchor)?,
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize) -> Result<(), Problem> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            Err(Problem::Nodes)
        } else {
            Ok(())
        }
    }

    fn open(
        &mut self,
        is_mapping: bool,
        style: StructureStyle,
        anchor: usize,
        tag: Option<&Tag>,
        start: usize,
    ) -> Result<(), Problem> {
        refuse_foreign_tag(tag)?;
        let nodes_before = self.nodes;
        self.count(1)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::Depth);
        }
        self.open.push(Open {
            is_mapping,
            is_block: style == StructureStyle::Block,
            anchor,
            start,
            nodes_before,
            children: Vec::new(),
        });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        // A block collection ends with its last value; the event comes only after blank lines and comments.
        let end = match open.children.last() {
            Some(last) if open.is_block => last.span().end,
            _ => end,
        };
        let start = match open.children.first() {
            Some(first) if open.is_block => first.start(),
            _ => open.start,
        };
        let content = if open.is_mapping {
            Content::Mapping(self.pairs(open.children))
        } else {
            Content::Sequence(open.children)
        };
        let size = self.nodes - open.nodes_before;
        self.finish(Node::new(content, start..end.max(start)), open.anchor, size)
    }

    fn repeat(&mut self, anchor: usize) -> Result<(), Problem> {
        self.aliases += 1;
        if self.aliases > MAX_ALIASES {
            return Err(Problem::Aliases);
        }
        // The size is charged before anything is copied.
        let size = self.anchors.get(&anchor).ok_or(Problem::Cycle)?.1;
        self.count(size)?;
        let node = self.anchors[&anchor].0.clone();
        self.place(node);
        Ok(())
    }

    fn finish(&mut self, node: Node<'a>, anchor: usize, size: usize) -> Result<(), Problem> {
        if anchor != 0 {
            // What is kept for aliases counts too: anchors inside each other would keep the innermost many times.
            self.count(size)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.place(node);
        Ok(())
    }

    fn place(&mut self, node: Node<'a>) {
        match self.open.last_mut() {
            Some(open) => open.children.push(node),
            None => self.document.root = Some(node),
        }
    }

    /// Pairs keys with values, applies merge keys and lets later keys replace earlier ones.
    fn pairs(&mut self, children: Vec<Node<'a>>) -> Vec<(Node<'a>, Node<'a>)> {
        let mut pairs = Vec::with_capacity(children.len() / 2);
        let mut merged = Vec::new();
        let mut children = children.into_iter();
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            match (key.as_plain(), value) {
                (Some("<<"), value) if is_mergeable(&value) => merged.push(value),
                (_, value) => pairs.push((key, value)),
            }
        }
        self.drop_replaced(&mut pairs);
        for value in merged {
            merge(&mut pairs, value);
        }
        pairs
    }

    fn drop_replaced(&mut self, pairs: &mut Vec<(Node<'a>, Node<'a>)>) {
        if !has_equal_keys(pairs) {
            return;
        }
        let texts = || pairs.iter().map(|(key, _)| key.as_text());
        let last: HashMap<&str, usize> = texts().enumerate().filter_map(|(at, text)| Some((text?, at))).collect();
        let kept: Vec<bool> = texts()
            .enumerate()
            .map(|(at, text)| text.is_none_or(|text| last.get(text) == Some(&at)))
            .collect();
        let replacing: HashSet<usize> = texts()
            .zip(&kept)
            .filter(|(_, kept)| !**kept)
            .filter_map(|(text, _)| last.get(text?).copied())
            .collect();
        self.document
            .replacing_keys
            .extend(replacing.iter().map(|at| pairs[*at].0.start()));
        self.document.replacing_keys.sort_unstable();
        let mut kept = kept.into_iter();
        pairs.retain(|_| kept.next().unwrap_or(true));
    }
}

fn has_equal_keys(pairs: &[(Node<'_>, Node<'_>)]) -> bool {
    let texts = || pairs.iter().filter_map(|(key, _)| key.as_text());
    if pairs.len() <= 16 {
        // A handful of keys is compared faster than hashed.
        texts()
            .enumerate()
            .any(|(at, text)| texts().skip(at + 1).any(|other| other == text))
    } else {
        let mut seen = HashSet::with_capacity(pairs.len());
        texts().any(|text| !seen.insert(text))
    }
}

fn is_mergeable(value: &Node<'_>) -> bool {
    let is_mapping = |node: &Node<'_>| matches!(node.content, Content::Mapping(_));
    match &value.content {
        Content::Sequence(items) => !items.is_empty() && items.iter().all(is_mapping),
        _ => is_mapping(value),
    }
}

/// Adds the pairs of a mapping, or of each mapping in a list, whose keys are not there yet.
fn merge<'a>(pairs: &mut Vec<(Node<'a>, Node<'a>)>, value: Node<'a>) {
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
        Content::Sequence(items) => items.into_iter().for_each(|item| merge(pairs, item)),
        Content::Scalar(..) => {}
    }
}

fn scalar_style(style: Style, tag: Option<&Tag>) -> Result<ScalarStyle, Problem> {
    refuse_foreign_tag(tag)?;
    Ok(match (style, tag.map(Tag::suffix)) {
        (_, Some("str" | "")) => ScalarStyle::Quoted,
        (_, Some(_)) | (Style::Plain, None) => ScalarStyle::Plain,
        (Style::Literal | Style::Folded, None) => ScalarStyle::Block,
        _ => ScalarStyle::Quoted,
    })
}

/// A tag of an application asks for code of that application; only YAML's own seven change nothing.
fn refuse_foreign_tag(tag: Option<&Tag>) -> Result<(), Problem> {
    let Some(tag) = tag else { return Ok(()) };
    let core = tag.handle() == "tag:yaml.org,2002:"
        && matches!(tag.suffix(), "str" | "int" | "float" | "bool" | "null" | "map" | "seq");
    let non_specific = tag.handle() == "!" && tag.suffix().is_empty();
    if core || non_specific {
        return Ok(());
    }
    let written = [tag.handle(), tag.suffix()].concat();
    Err(Problem::Tag(written.chars().take(80).collect()))
}

fn byte_offset(text: &str, span: &Span) -> usize {
    span.start.byte_offset().unwrap_or(0).min(text.len())
}

fn syntax_error(text: &str, error: &ScanError) -> YamlError {
    let marker = error.marker();
    let by_characters = || text.char_indices().nth(marker.index()).map_or(text.len(), |(at, _)| at);
    let offset = marker.byte_offset().unwrap_or_else(by_characters).min(text.len());
    let problem = match error.kind() {
        ErrorKind::RecursionLimitExceeded => Problem::Depth,
        kind => Problem::Syntax {
            message: kind.to_string(),
            hint: hint(kind),
        },
    };
    YamlError { offset, problem }
}

fn hint(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => "put the value in quotes: it contains a colon with a blank after it",
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => "indent with blanks, not with tabs",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping => "close the bracket, or put the value in quotes if it is text",
        ErrorKind::UnknownAnchor => "put the value in quotes: a leading asterisk refers to another value",
        ErrorKind::UnexpectedCharacter { .. } => "put the value in quotes, or remove the character",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts of the everyday shape, with enough of the unusual to find the edges of it.
    fn frontmatter() -> impl Strategy<Value = String> {
        let key = "[a-c]|name|x-y|<<|'q'|\\? e";
        let word = "[a-z]{1,4}|1\\.0|~|null|true|it's|a:b|#c|\\(x\\)|é|技|\\.\\.\\.|-x|- y|@z|\\*a|!t|&b x";
        let value = prop_oneof![
            8 => prop::collection::vec(word, 0..4).prop_map(|words| words.join(" ")),
            1 => "'[a-z ]{0,4}'|\"[a-z\\\\ ]{0,4}\"|\\[[a-z,' ]{0,6}\\]|\\{[a-z:, ]{0,6}\\}",
            1 => "x: y|x:|x #y|x  |[|>][-+1]?",
        ];
        let line = (
            0..8_usize,
            "|- |  |- - ",
            key,
            "(: |:|:  | : )",
            value.clone(),
            "\n{1,2}| \n|\r\n|\n#c\n",
        )
            .prop_map(|(indent, dash, key, colon, value, end)| {
                let indent = [0, 0, 0, 2, 2, 2, 1, 4][indent];
                format!("{}{dash}{key}{colon}{value}{end}", " ".repeat(indent))
            });
        let entry = (prop_oneof![Just(0), Just(2), Just(4)], "- |-|", value, "\n{1,2}")
            .prop_map(|(indent, dash, value, end)| format!("{}{dash}{value}{end}", " ".repeat(indent)));
        let neat = ("[a-c]|[d-f]g", "[a-z]{1,3}( [a-z]{1,3})?|\\[[a-z], '[a-z]'\\]|'x y'|[|>]-?(\n  [a-z]{1,3}){1,3}\n?|[|>]-?(\n{1,3} [a-z]){1,3}|\n  [a-z]: x\n  k[a-z]: [a-z]|\n- x\n- y|\n  - x\n  - y|")
            .prop_map(|(key, value)| format!("{key}: {value}\n"));
        prop::collection::vec(prop_oneof![4 => neat, 2 => line, 1 => entry], 0..6).prop_map(|lines| lines.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn both_readers_agree(text in frontmatter()) {
            if let Some(root) = everyday_yaml::read(&text) {
                let document = read_any(&text);
                prop_assert!(document.is_ok(), "{text:?} {document:?}");
                let document = document.unwrap();
                prop_assert_eq!(document.root.as_ref(), Some(&root), "{:?}", text);
                prop_assert!(document.replacing_keys.is_empty());
            }
        }

        #[test]
        fn any_text_gives_an_answer(text in "(?s).{0,200}") {
            let _ = read(&text);
        }
    }

    #[test]
    fn everyday_frontmatter_takes_the_fast_way() {
        for text in [
            "name: a\ndescription: Does b. Use when c.\n",
            "name: a\ndescription: \"x: y\"\nlicense: MIT\n\nmetadata:\n  author: b\n  version: 1.0\ntags: [a, \"b\"]\n",
            "name: a\ndescription: |\n  b\n  c\nallowed-tools:\n- Read\n- Bash(git *)\nmodel:\n",
            "name: a\ndescription: >-\n  b\n  c\nuser-invocable: true\n",
        ] {
            assert_eq!(everyday_yaml::read(text), read_any(text).unwrap().root, "{text}");
            assert!(everyday_yaml::read(text).is_some(), "{text}");
        }
    }
}
