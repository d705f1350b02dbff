//! A YAML value together with the place it has in its source.

use std::borrow::Cow;
use std::ops::Range;

/// One value and the bytes of the source it was written in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'a> {
    pub content: Content<'a>,
    start: u32,
    end: u32,
}

/// What a node is. Scalars keep their text: nothing is turned into a number, a date or a boolean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content<'a> {
    Scalar(Cow<'a, str>, ScalarStyle),
    Sequence(Vec<Node<'a>>),
    Mapping(Vec<(Node<'a>, Node<'a>)>),
}

/// How a scalar was written, which decides whether `true` is a word or a boolean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarStyle {
    Plain,
    Quoted,
    Block,
}

impl<'a> Node<'a> {
    pub(crate) fn new(content: Content<'a>, span: Range<usize>) -> Self {
        // Sources are limited to far less than 4 GiB before they are parsed.
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            content,
            start: narrow(span.start),
            end: narrow(span.end),
        }
    }

    /// The bytes of the source that the node covers.
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

    /// The text of a scalar that was written without quotes on the lines of its key.
    pub(crate) fn as_plain(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text, ScalarStyle::Plain) => Some(text),
            _ => None,
        }
    }

    /// Whether the node stands for nothing: an empty plain scalar, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.as_plain(), Some("" | "~" | "null" | "Null" | "NULL"))
    }

    /// The word for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Scalar(..) => "text",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }
}
