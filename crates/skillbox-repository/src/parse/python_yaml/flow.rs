//! Flow collections: lists in brackets and mappings in braces. Only PyYAML's rules allow them.

use super::parser::{ListIndent, Parser};
use super::scanner::{PythonYamlError, Scanner, TokenKind};
use crate::parse::yaml::{Content, Node};

/// The maximum nesting depth of flow collections.
const MAX_FLOW_DEPTH: usize = 64;

impl Scanner<'_> {
    /// Scans a bracket, a brace or a comma.
    pub(super) fn scan_flow_indicator(&mut self, c: char) -> Result<(), PythonYamlError> {
        match c {
            '[' | '{' => {
                self.save_possible_key()?;
                if self.possible_keys.len() > MAX_FLOW_DEPTH {
                    return self.error("collections are nested too deeply");
                }
                self.possible_keys.push(None);
                self.allows_key = true;
            }
            ']' | '}' => {
                self.drop_possible_key()?;
                if !self.is_in_flow() {
                    return self.error("a bracket is closed that was not opened");
                }
                self.possible_keys.pop();
                self.allows_key = false;
            }
            _ => {
                self.allows_key = true;
                self.drop_possible_key()?;
            }
        }
        let start = self.at;
        self.advance();
        self.push(TokenKind::Flow(c), start);
        Ok(())
    }
}

impl Parser {
    /// Parses the entries of a list after its opening bracket.
    pub(super) fn parse_flow_list(&mut self, start: usize) -> Result<Node<'static>, PythonYamlError> {
        let mut items = Vec::new();
        while !self.next_is_flow("]") {
            if !items.is_empty() {
                self.expect_comma()?;
            }
            if self.next_is(|kind| *kind == TokenKind::Key) {
                let start = self.last_end;
                let pair = self.parse_flow_pair(",]")?;
                let span = pair.0.start().max(start)..self.last_end;
                items.push(Node::new(Content::Mapping(vec![pair]), span));
            } else if !self.next_is_flow("]") {
                items.push(self.parse_node(ListIndent::Required)?);
            }
        }
        self.next_token();
        Ok(Node::new(Content::Sequence(items), start..self.last_end))
    }

    /// Parses the pairs of a mapping after its opening brace.
    pub(super) fn parse_flow_mapping(&mut self, start: usize) -> Result<Node<'static>, PythonYamlError> {
        let mut pairs = Vec::new();
        while !self.next_is_flow("}") {
            if !pairs.is_empty() {
                self.expect_comma()?;
            }
            if self.next_is(|kind| *kind == TokenKind::Key) {
                pairs.push(self.parse_flow_pair(",}")?);
            } else if !self.next_is_flow("}") {
                let key = self.parse_node(ListIndent::Required)?;
                pairs.push((key, self.empty_scalar()));
            }
        }
        self.next_token();
        Ok(Node::new(Content::Mapping(pairs), start..self.last_end))
    }

    /// Parses a key and its value. A token of `end` ends the pair.
    fn parse_flow_pair(&mut self, end: &str) -> Result<(Node<'static>, Node<'static>), PythonYamlError> {
        self.next_token();
        let has_key = !self.next_is_flow(end) && !self.next_is(|kind| *kind == TokenKind::Value);
        let key = match has_key {
            true => self.parse_node(ListIndent::Required)?,
            false => self.empty_scalar(),
        };
        if !self.next_is(|kind| *kind == TokenKind::Value) {
            return Ok((key, self.empty_scalar()));
        }
        self.next_token();
        let value = match self.next_is_flow(end) {
            true => self.empty_scalar(),
            false => self.parse_node(ListIndent::Required)?,
        };
        Ok((key, value))
    }

    fn next_is_flow(&mut self, indicators: &str) -> bool {
        self.next_is(|kind| matches!(kind, TokenKind::Flow(c) if indicators.contains(*c)))
    }

    fn expect_comma(&mut self) -> Result<(), PythonYamlError> {
        match self.next_token() {
            Some(token) if token.kind != TokenKind::Flow(',') => self.error_at(&token, "a comma is expected here"),
            _ => Ok(()),
        }
    }
}
