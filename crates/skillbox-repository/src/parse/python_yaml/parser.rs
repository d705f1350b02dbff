//! Builds nodes from tokens.

use super::rules::Rules;
use super::scanner::{PythonYamlError, Token, TokenKind, scan};
use crate::parse::yaml::{Content, Node, ScalarStyle};

/// Parses the only document as the reference tool does; `None` for a text without content.
pub(crate) fn parse_reference_yaml(text: &str) -> Result<Option<Node<'static>>, PythonYamlError> {
    parse_document(text, Rules::ReferenceTool)
}

/// Parses the only document as PyYAML does; `None` for a text without content.
pub(crate) fn parse_like_pyyaml(text: &str) -> Result<Option<Node<'static>>, PythonYamlError> {
    parse_document(text, Rules::PyYaml)
}

fn parse_document(text: &str, rules: Rules) -> Result<Option<Node<'static>>, PythonYamlError> {
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        return Err(PythonYamlError {
            offset,
            message: format!("the character U+{:04X} is not allowed", u32::from(c)).into(),
        });
    }
    let mut parser = Parser {
        tokens: scan(text, rules)?.into_iter().peekable(),
        last_end: 0,
    };
    if parser.next_is(|kind| *kind == TokenKind::End) {
        return Ok(None);
    }
    let root = parser.parse_node(ListIndent::Required)?;
    if parser.next_is(|kind| *kind == TokenKind::DocumentEnd) {
        parser.next_token();
    }
    match parser.next_token() {
        Some(token) if token.kind != TokenKind::End => parser.error_at(&token, "text after the end of the mapping"),
        _ => Ok(Some(root)),
    }
}

/// Whether YAML allows the character in a text.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether the entries of a list must be indented more than its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListIndent {
    Optional,
    Required,
}

pub(super) struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// The end of the last token that is not a `BlockEnd` or `End`.
    pub(super) last_end: usize,
}

impl Parser {
    pub(super) fn next_token(&mut self) -> Option<Token> {
        let token = self.tokens.next()?;
        if !matches!(token.kind, TokenKind::BlockEnd | TokenKind::End) {
            self.last_end = token.end;
        }
        Some(token)
    }

    pub(super) fn next_is(&mut self, wanted: impl Fn(&TokenKind) -> bool) -> bool {
        self.tokens.peek().is_some_and(|token| wanted(&token.kind))
    }

    pub(super) fn error_at<T>(&self, token: &Token, message: &'static str) -> Result<T, PythonYamlError> {
        Err(PythonYamlError {
            offset: token.start,
            message: message.into(),
        })
    }

    pub(super) fn empty_scalar(&self) -> Node<'static> {
        Node::new(
            Content::Scalar("".into(), ScalarStyle::Plain),
            self.last_end..self.last_end,
        )
    }

    pub(super) fn parse_node(&mut self, list_indent: ListIndent) -> Result<Node<'static>, PythonYamlError> {
        if list_indent == ListIndent::Optional && self.next_is(|kind| *kind == TokenKind::Entry) {
            let start = self.tokens.peek().map_or(self.last_end, |token| token.start);
            let items = self.parse_entries(|kind| {
                matches!(
                    kind,
                    TokenKind::Entry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd
                )
            })?;
            return Ok(Node::new(Content::Sequence(items), start..self.last_end));
        }
        let Some(token) = self.next_token() else {
            return Ok(self.empty_scalar());
        };
        match token.kind {
            TokenKind::Scalar(text, style) => {
                Ok(Node::new(Content::Scalar(text.into(), style), token.start..token.end))
            }
            TokenKind::SequenceStart => {
                let items = self.parse_entries(|kind| matches!(kind, TokenKind::Entry | TokenKind::BlockEnd))?;
                self.expect_block_end()?;
                Ok(Node::new(Content::Sequence(items), token.start..self.last_end))
            }
            TokenKind::MappingStart => {
                let pairs = self.parse_pairs()?;
                self.expect_block_end()?;
                Ok(Node::new(Content::Mapping(pairs), token.start..self.last_end))
            }
            TokenKind::Flow('[') => self.parse_flow_list(token.start),
            TokenKind::Flow('{') => self.parse_flow_mapping(token.start),
            _ => self.error_at(&token, "a value is expected here"),
        }
    }

    /// Parses list entries. An entry is empty if `ends_empty_entry` accepts the token after its dash.
    fn parse_entries(
        &mut self,
        ends_empty_entry: impl Fn(&TokenKind) -> bool,
    ) -> Result<Vec<Node<'static>>, PythonYamlError> {
        let mut items = Vec::new();
        while self.next_is(|kind| *kind == TokenKind::Entry) {
            self.next_token();
            items.push(if self.next_is(&ends_empty_entry) {
                self.empty_scalar()
            } else {
                self.parse_node(ListIndent::Required)?
            });
        }
        Ok(items)
    }

    fn parse_pairs(&mut self) -> Result<Vec<(Node<'static>, Node<'static>)>, PythonYamlError> {
        let mut pairs = Vec::new();
        while self.next_is(|kind| matches!(kind, TokenKind::Key | TokenKind::Value)) {
            let key = self.parse_key_or_value(TokenKind::Key)?;
            let value = self.parse_key_or_value(TokenKind::Value)?;
            pairs.push((key, value));
        }
        Ok(pairs)
    }

    fn parse_key_or_value(&mut self, introduced_by: TokenKind) -> Result<Node<'static>, PythonYamlError> {
        if !self.next_is(|kind| *kind == introduced_by) {
            return Ok(self.empty_scalar());
        }
        self.next_token();
        if self.next_is(|kind| matches!(kind, TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd)) {
            return Ok(self.empty_scalar());
        }
        self.parse_node(ListIndent::Optional)
    }

    fn expect_block_end(&mut self) -> Result<(), PythonYamlError> {
        match self.next_token() {
            Some(token) if token.kind != TokenKind::BlockEnd => {
                self.error_at(&token, "this line is not aligned with the lines above it")
            }
            _ => Ok(()),
        }
    }
}
