//! Builds nodes from the tokens of the strict subset.

use super::scanner::{Kind, Refusal, Token, scan};
use crate::node::{Content, Node, ScalarStyle};

/// Reads the only document; nothing for a text without content.
pub(crate) fn parse(text: &str) -> Result<Option<Node<'static>>, Refusal> {
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        return Err(Refusal {
            offset,
            message: format!("the character U+{:04X} is not allowed", u32::from(c)).into(),
        });
    }
    let mut parser = Parser {
        tokens: scan(text)?.into_iter().peekable(),
        last_end: 0,
    };
    if parser.next_is(|kind| *kind == Kind::End) {
        return Ok(None);
    }
    let root = parser.node(Indentless::No)?;
    if parser.next_is(|kind| *kind == Kind::DocumentEnd) {
        parser.take();
    }
    match parser.take() {
        Some(token) if token.kind != Kind::End => parser.refuse(&token, "text after the end of the mapping"),
        _ => Ok(Some(root)),
    }
}

/// The characters that YAML allows in a text.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether entries of a list may stand in the column of the key that the list belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indentless {
    Yes,
    No,
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    last_end: usize,
}

impl Parser {
    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.next()?;
        if !matches!(token.kind, Kind::BlockEnd | Kind::End) {
            self.last_end = token.end;
        }
        Some(token)
    }

    fn next_is(&mut self, wanted: impl Fn(&Kind) -> bool) -> bool {
        self.tokens.peek().is_some_and(|token| wanted(&token.kind))
    }

    fn refuse<T>(&self, token: &Token, message: &'static str) -> Result<T, Refusal> {
        Err(Refusal {
            offset: token.start,
            message: message.into(),
        })
    }

    fn empty(&self) -> Node<'static> {
        Node::new(
            Content::Scalar("".into(), ScalarStyle::Plain),
            self.last_end..self.last_end,
        )
    }

    fn node(&mut self, indentless: Indentless) -> Result<Node<'static>, Refusal> {
        if indentless == Indentless::Yes && self.next_is(|kind| *kind == Kind::Entry) {
            let start = self.tokens.peek().map_or(self.last_end, |token| token.start);
            let items = self.entries(|kind| matches!(kind, Kind::Entry | Kind::Key | Kind::Value | Kind::BlockEnd))?;
            return Ok(Node::new(Content::Sequence(items), start..self.last_end));
        }
        let Some(token) = self.take() else {
            return Ok(self.empty());
        };
        match token.kind {
            Kind::Scalar(text, style) => Ok(Node::new(Content::Scalar(text.into(), style), token.start..token.end)),
            Kind::SequenceStart => {
                let items = self.entries(|kind| matches!(kind, Kind::Entry | Kind::BlockEnd))?;
                self.block_end()?;
                Ok(Node::new(Content::Sequence(items), token.start..self.last_end))
            }
            Kind::MappingStart => {
                let pairs = self.pairs()?;
                self.block_end()?;
                Ok(Node::new(Content::Mapping(pairs), token.start..self.last_end))
            }
            _ => self.refuse(&token, "a value is expected here"),
        }
    }

    fn entries(&mut self, is_empty_before: impl Fn(&Kind) -> bool) -> Result<Vec<Node<'static>>, Refusal> {
        let mut items = Vec::new();
        while self.next_is(|kind| *kind == Kind::Entry) {
            self.take();
            items.push(if self.next_is(&is_empty_before) {
                self.empty()
            } else {
                self.node(Indentless::No)?
            });
        }
        Ok(items)
    }

    fn pairs(&mut self) -> Result<Vec<(Node<'static>, Node<'static>)>, Refusal> {
        let mut pairs = Vec::new();
        while self.next_is(|kind| matches!(kind, Kind::Key | Kind::Value)) {
            let key = self.part(Kind::Key)?;
            let value = self.part(Kind::Value)?;
            pairs.push((key, value));
        }
        Ok(pairs)
    }

    fn part(&mut self, introduced_by: Kind) -> Result<Node<'static>, Refusal> {
        if !self.next_is(|kind| *kind == introduced_by) {
            return Ok(self.empty());
        }
        self.take();
        if self.next_is(|kind| matches!(kind, Kind::Key | Kind::Value | Kind::BlockEnd)) {
            return Ok(self.empty());
        }
        self.node(Indentless::Yes)
    }

    fn block_end(&mut self) -> Result<(), Refusal> {
        match self.take() {
            Some(token) if token.kind != Kind::BlockEnd => {
                self.refuse(&token, "this does not line up with what stands above it")
            }
            _ => Ok(()),
        }
    }
}
