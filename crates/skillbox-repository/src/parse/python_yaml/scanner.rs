//! Splits frontmatter into tokens exactly as PyYAML or the reference tool does.
//!
//! No general parser can be configured to read the same texts. PyYAML accepts continuation lines of quoted texts and of
//! flow collections at any indentation; the reference tool accepts only block collections and scalars, with its own
//! rules for tabs and line breaks.

use std::borrow::Cow;

use super::rules::Rules;
use crate::parse::yaml::ScalarStyle;

/// The maximum nesting depth. The reference tool overflows its stack at a slightly larger depth.
const MAX_DEPTH: usize = 245;

/// Why the tool rejects a text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PythonYamlError {
    pub offset: usize,
    pub message: Cow<'static, str>,
}

/// A token and its byte range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Scalar(String, ScalarStyle),
    MappingStart,
    SequenceStart,
    BlockEnd,
    Key,
    Value,
    Entry,
    /// A bracket, a brace or a comma.
    Flow(char),
    DocumentEnd,
    End,
}

/// A scalar or flow collection that is a key if a colon follows.
pub(super) struct PossibleKey {
    /// The index at which the key token must be inserted.
    pub(super) token_index: usize,
    pub(super) is_required: bool,
    pub(super) start: usize,
    /// The number of characters before it.
    pub(super) char_offset: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The state of the scanner. Columns and key lengths count characters, offsets count bytes.
pub(super) struct Scanner<'a> {
    text: &'a str,
    pub(super) rules: Rules,
    pub(super) at: usize,
    pub(super) char_offset: usize,
    pub(super) line: usize,
    pub(super) column: usize,
    /// The column of the innermost open collection; -1 outside of any.
    pub(super) indent: isize,
    outer_indents: Vec<isize>,
    pub(super) allows_key: bool,
    /// One for the block context, and one for each open flow collection.
    pub(super) possible_keys: Vec<Option<PossibleKey>>,
    pub(super) tokens: Vec<Token>,
}

/// Scans the whole text.
pub(super) fn scan(text: &str, rules: Rules) -> Result<Vec<Token>, PythonYamlError> {
    let mut scanner = Scanner {
        text,
        rules,
        at: 0,
        char_offset: 0,
        line: 0,
        column: 0,
        indent: -1,
        outer_indents: Vec::new(),
        allows_key: true,
        possible_keys: vec![None],
        tokens: Vec::new(),
    };
    while scanner.scan_token()? {}
    Ok(scanner.tokens)
}

pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether `c` is a line break or the NUL that `peek` returns at the end of the text. The text contains no NUL.
pub(super) fn is_line_break_or_end(c: char) -> bool {
    c == '\0' || is_line_break(c)
}

pub(super) fn is_blank_or_end(c: char) -> bool {
    matches!(c, ' ' | '\t') || is_line_break_or_end(c)
}

impl Scanner<'_> {
    pub(super) fn peek(&self) -> char {
        self.text[self.at..].chars().next().unwrap_or('\0')
    }

    pub(super) fn peek_at(&self, ahead: usize) -> char {
        self.text[self.at..].chars().nth(ahead).unwrap_or('\0')
    }

    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The text from an earlier offset to the current one.
    pub(super) fn text_since(&self, start: usize) -> &str {
        &self.text[start..self.at]
    }

    pub(super) fn advance(&mut self) {
        let Some(c) = self.text[self.at..].chars().next() else {
            return;
        };
        self.at += c.len_utf8();
        self.char_offset += 1;
        let ends_line = match (c, self.rules) {
            ('\n', _) => true,
            ('\r', _) => self.peek() != '\n',
            (c, Rules::PyYaml) => is_line_break(c),
            _ => false,
        };
        if ends_line {
            self.line += 1;
            self.column = 0;
        } else if c != '\u{feff}' {
            self.column += 1;
        }
    }

    pub(super) fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while wanted(self.peek()) {
            self.advance();
        }
    }

    /// Skips a line break and returns the character that it contributes to a scalar.
    pub(super) fn take_line_break(&mut self) -> Option<char> {
        let c = self.peek();
        if !is_line_break(c) {
            return None;
        }
        self.advance();
        if c == '\r' && self.peek() == '\n' {
            self.advance();
        }
        Some(if matches!(c, '\r' | '\u{85}') { '\n' } else { c })
    }

    pub(super) fn is_in_flow(&self) -> bool {
        self.possible_keys.len() > 1
    }

    /// Whether a document marker is at the current position.
    pub(super) fn is_at_document_marker(&self) -> bool {
        (self.rest().starts_with("---") || self.rest().starts_with("...")) && is_blank_or_end(self.peek_at(3))
    }

    pub(super) fn error<T>(&self, message: &'static str) -> Result<T, PythonYamlError> {
        Err(PythonYamlError {
            offset: self.at,
            message: message.into(),
        })
    }

    pub(super) fn push(&mut self, kind: TokenKind, start: usize) {
        let end = self.at;
        self.tokens.push(Token { kind, start, end });
    }

    /// Scans the next tokens; returns false at the end of the text.
    fn scan_token(&mut self) -> Result<bool, PythonYamlError> {
        self.skip_to_token();
        self.drop_stale_possible_keys()?;
        if !self.is_in_flow() {
            let column = isize::try_from(self.column).unwrap_or(isize::MAX);
            self.close_collections(column);
        }
        let c = self.peek();
        match c {
            '\0' if self.is_in_flow() => return self.error("a bracket is never closed"),
            '\0' => {
                self.close_collections(-1);
                self.drop_possible_key()?;
                self.push(TokenKind::End, self.at);
                return Ok(false);
            }
            '.' | '-' if self.is_in_flow() && self.column == 0 && self.is_at_document_marker() => {
                return self.error("a bracket is never closed");
            }
            '.' if self.column == 0 && self.is_at_document_marker() => {
                self.close_collections(-1);
                self.drop_possible_key()?;
                self.allows_key = false;
                self.push(TokenKind::DocumentEnd, self.at);
                (0..3).for_each(|_| self.advance());
            }
            '%' if self.column == 0 => return self.error("directives are not allowed"),
            '[' | ']' | '{' | '}' | ',' if self.rules == Rules::PyYaml => self.scan_flow_indicator(c)?,
            '[' | ']' | '{' | '}' | ',' => return self.error("flow style is not allowed"),
            '*' | '&' => return self.error("anchors and aliases are not allowed"),
            '!' => return self.error("tags are not allowed"),
            '-' if is_blank_or_end(self.peek_at(1)) => self.scan_entry()?,
            '?' if self.is_in_flow() || is_blank_or_end(self.peek_at(1)) => self.scan_explicit_key()?,
            ':' if self.is_in_flow() || is_blank_or_end(self.peek_at(1)) => self.scan_value()?,
            '|' | '>' if self.is_in_flow() => {
                return self.error("a value cannot start with this character; quote it");
            }
            '|' | '>' => {
                self.allows_key = true;
                self.drop_possible_key()?;
                self.scan_block_scalar(c)?;
            }
            '\'' | '"' => {
                self.save_possible_key()?;
                self.allows_key = false;
                self.scan_quoted(c)?;
            }
            '\t' => return self.error("a tab cannot start a value; indent with blanks"),
            '%' | '@' | '`' => return self.error("a value cannot start with this character; quote it"),
            _ => {
                self.save_possible_key()?;
                self.allows_key = false;
                self.scan_plain();
            }
        }
        Ok(true)
    }

    fn skip_to_token(&mut self) {
        if self.at == 0 && self.peek() == '\u{feff}' {
            self.advance();
        }
        loop {
            self.skip_while(|c| c == ' ');
            if self.peek() == '#' {
                self.skip_while(|c| !is_line_break_or_end(c));
                while self.take_line_break().is_some() {}
                self.allows_key |= !self.is_in_flow();
            } else if self.take_line_break().is_some() {
                self.allows_key |= !self.is_in_flow();
                // After an empty line, the reference tool skips all white space, including tabs.
                if self.rules == Rules::ReferenceTool && self.peek() == '\n' {
                    self.skip_while(|c| is_line_break(c) || matches!(c, ' ' | '\t'));
                }
            } else {
                return;
            }
        }
    }

    /// Closes the collections that are indented more than `column`.
    fn close_collections(&mut self, column: isize) {
        while self.indent > column {
            self.indent = self.outer_indents.pop().unwrap_or(-1);
            self.push(TokenKind::BlockEnd, self.at);
        }
    }

    /// Opens a collection if the column is deeper than that of the innermost one.
    fn open_collection(&mut self, column: usize) -> Result<bool, PythonYamlError> {
        let column = isize::try_from(column).unwrap_or(isize::MAX);
        if self.indent >= column {
            return Ok(false);
        }
        if self.outer_indents.len() >= MAX_DEPTH {
            return self.error("collections are nested too deeply");
        }
        self.outer_indents.push(self.indent);
        self.indent = column;
        Ok(true)
    }

    fn scan_entry(&mut self) -> Result<(), PythonYamlError> {
        if self.is_in_flow() || !self.allows_key {
            return self.error("a list entry is not allowed here");
        }
        self.scan_indicator(TokenKind::SequenceStart, TokenKind::Entry)
    }

    fn scan_explicit_key(&mut self) -> Result<(), PythonYamlError> {
        if self.is_in_flow() {
            self.allows_key = false;
            self.drop_possible_key()?;
            self.push(TokenKind::Key, self.at);
            self.advance();
            return Ok(());
        }
        if !self.allows_key {
            return self.error("a key is not allowed here");
        }
        self.scan_indicator(TokenKind::MappingStart, TokenKind::Key)
    }

    fn scan_indicator(&mut self, collection: TokenKind, token: TokenKind) -> Result<(), PythonYamlError> {
        if self.open_collection(self.column)? {
            self.push(collection, self.at);
        }
        self.allows_key = true;
        self.drop_possible_key()?;
        self.push(token, self.at);
        self.advance();
        Ok(())
    }

    fn scan_value(&mut self) -> Result<(), PythonYamlError> {
        if let Some(key) = self.take_possible_key() {
            let token = |kind| Token {
                kind,
                start: key.start,
                end: key.start,
            };
            self.tokens.insert(key.token_index, token(TokenKind::Key));
            if !self.is_in_flow() && self.open_collection(key.column)? {
                self.tokens.insert(key.token_index, token(TokenKind::MappingStart));
            }
            self.allows_key = false;
        } else if self.is_in_flow() {
            self.allows_key = false;
        } else {
            if !self.allows_key {
                return self.error("a colon with a blank after it is not allowed here; quote the value");
            }
            if self.open_collection(self.column)? {
                self.push(TokenKind::MappingStart, self.at);
            }
            self.allows_key = true;
        }
        self.push(TokenKind::Value, self.at);
        self.advance();
        Ok(())
    }
}
