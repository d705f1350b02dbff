//! A YAML document: values and their positions in the source.

use std::borrow::Cow;
use std::ops::Range;

/// A YAML document.
#[derive(Debug, Default)]
pub(in crate::parse) struct Document<'a> {
    /// `None` for a document without content.
    pub root: Option<Node<'a>>,
    /// Offsets of the keys that replaced an earlier, equal key.
    pub duplicate_keys: Vec<usize>,
}

/// A value and its byte range in the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'a> {
    pub content: Content<'a>,
    start: u32,
    end: u32,
}

/// The value of a node. Scalars keep their text: nothing is converted to a number, a date or a boolean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content<'a> {
    Scalar(Cow<'a, str>, ScalarStyle),
    Sequence(Vec<Node<'a>>),
    Mapping(Vec<(Node<'a>, Node<'a>)>),
}

/// The style of a scalar, which decides whether `true` is a text or a boolean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarStyle {
    Plain,
    Quoted,
    Block,
}

impl<'a> Node<'a> {
    pub(crate) fn new(content: Content<'a>, span: Range<usize>) -> Self {
        // Documents have at most 1 MiB, so offsets fit.
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            content,
            start: narrow(span.start),
            end: narrow(span.end),
        }
    }

    /// The byte range of the node in the source.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The offset of the first byte.
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }

    /// The text of a scalar.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// The text of a plain scalar: not quoted and not a block.
    pub(crate) fn as_plain(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text, ScalarStyle::Plain) => Some(text),
            _ => None,
        }
    }

    /// Whether the node is null: an empty plain scalar, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.as_plain(), Some("" | "~" | "null" | "Null" | "NULL"))
    }

    /// The kind of the node, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Scalar(..) => "text",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }
}
