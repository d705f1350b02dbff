//! Cuts frontmatter into tokens exactly as the reference tool's YAML reader does.
//!
//! The reference accepts a subset of YAML that no ordinary parser can be bent to: block collections and scalars
//! only, with its own ideas of tabs, of line breaks and of where a quoted text may go on. This is that subset.

use std::borrow::Cow;

use crate::node::ScalarStyle;

/// A key must end within so many characters.
const MAX_KEY: usize = 1024;
/// The reference overflows its stack a little above this.
pub(crate) const MAX_DEPTH: usize = 245;

/// Why the text is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub offset: usize,
    pub message: Cow<'static, str>,
}

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Scalar(String, ScalarStyle),
    MappingStart,
    SequenceStart,
    BlockEnd,
    Key,
    Value,
    Entry,
    DocumentEnd,
    End,
}

/// A scalar that becomes a key if a colon follows.
struct PossibleKey {
    token: usize,
    is_required: bool,
    start: usize,
    characters: usize,
    line: usize,
    column: usize,
}

/// The state of the reading. Columns and key lengths count characters, places count bytes.
pub(super) struct Scanner<'a> {
    text: &'a str,
    pub(super) at: usize,
    characters: usize,
    line: usize,
    pub(super) column: usize,
    /// The column of the innermost open collection; -1 outside of all.
    pub(super) indent: isize,
    outer_indents: Vec<isize>,
    pub(super) allow_key: bool,
    key: Option<PossibleKey>,
    pub(super) tokens: Vec<Token>,
}

/// Cuts the whole text.
pub(super) fn scan(text: &str) -> Result<Vec<Token>, Refusal> {
    let mut scanner = Scanner {
        text,
        at: 0,
        characters: 0,
        line: 0,
        column: 0,
        indent: -1,
        outer_indents: Vec::new(),
        allow_key: true,
        key: None,
        tokens: Vec::new(),
    };
    while scanner.next_token()? {}
    Ok(scanner.tokens)
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The end of the text reads as NUL, which cannot occur in it.
pub(super) fn is_break_or_end(c: char) -> bool {
    c == '\0' || is_break(c)
}

pub(super) fn is_blank_or_end(c: char) -> bool {
    matches!(c, ' ' | '\t') || is_break_or_end(c)
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

    /// What was passed since an earlier place.
    pub(super) fn passed(&self, start: usize) -> &str {
        &self.text[start..self.at]
    }

    pub(super) fn forward(&mut self) {
        let Some(c) = self.text[self.at..].chars().next() else {
            return;
        };
        self.at += c.len_utf8();
        self.characters += 1;
        if c == '\n' {
            self.line += 1;
            self.column = 0;
        } else if c != '\u{feff}' {
            self.column += 1;
        }
    }

    pub(super) fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while wanted(self.peek()) {
            self.forward();
        }
    }

    /// Passes one break and says what it means in a value.
    pub(super) fn take_break(&mut self) -> Option<char> {
        let c = self.peek();
        if !is_break(c) {
            return None;
        }
        self.forward();
        Some(if c == '\u{85}' { '\n' } else { c })
    }

    /// Whether a line with a document marker begins here.
    pub(super) fn at_document_mark(&self) -> bool {
        (self.rest().starts_with("---") || self.rest().starts_with("...")) && is_blank_or_end(self.peek_at(3))
    }

    pub(super) fn refuse<T>(&self, message: &'static str) -> Result<T, Refusal> {
        Err(Refusal {
            offset: self.at,
            message: message.into(),
        })
    }

    pub(super) fn push(&mut self, kind: Kind, start: usize) {
        let end = self.at;
        self.tokens.push(Token { kind, start, end });
    }

    /// Reads one token or two; false at the end.
    fn next_token(&mut self) -> Result<bool, Refusal> {
        self.skip_to_token();
        self.drop_stale_key()?;
        let column = isize::try_from(self.column).unwrap_or(isize::MAX);
        self.unwind(column);
        let c = self.peek();
        match c {
            '\0' => {
                self.unwind(-1);
                self.drop_key()?;
                self.push(Kind::End, self.at);
                return Ok(false);
            }
            '.' if self.column == 0 && self.at_document_mark() => {
                self.unwind(-1);
                self.drop_key()?;
                self.allow_key = false;
                self.push(Kind::DocumentEnd, self.at);
                (0..3).for_each(|_| self.forward());
            }
            '%' if self.column == 0 => return self.refuse("directives are not allowed"),
            '[' | ']' | '{' | '}' | ',' => return self.refuse("flow style is not allowed"),
            '*' | '&' => return self.refuse("anchors and aliases are not allowed"),
            '!' => return self.refuse("tags are not allowed"),
            '-' if is_blank_or_end(self.peek_at(1)) => self.entry()?,
            '?' if is_blank_or_end(self.peek_at(1)) => self.explicit_key()?,
            ':' if is_blank_or_end(self.peek_at(1)) => self.value()?,
            '|' | '>' => {
                self.allow_key = true;
                self.drop_key()?;
                self.block_scalar(c)?;
            }
            '\'' | '"' => {
                self.save_key()?;
                self.allow_key = false;
                self.quoted(c)?;
            }
            '\t' => return self.refuse("a tab cannot start a value; indent with blanks"),
            '%' | '@' | '`' => return self.refuse("a value cannot start with this character; quote it"),
            _ => {
                self.save_key()?;
                self.allow_key = false;
                self.plain();
            }
        }
        Ok(true)
    }

    fn skip_to_token(&mut self) {
        if self.at == 0 && self.peek() == '\u{feff}' {
            self.forward();
        }
        loop {
            self.skip_while(|c| c == ' ');
            if self.peek() == '#' {
                self.skip_while(|c| !is_break_or_end(c));
                while self.take_break().is_some() {}
                self.allow_key = true;
            } else if self.take_break().is_some() {
                self.allow_key = true;
                // After an empty line, all blank space goes, tabs included.
                if self.peek() == '\n' {
                    self.skip_while(|c| is_break(c) || matches!(c, ' ' | '\t'));
                }
            } else {
                return;
            }
        }
    }

    fn drop_stale_key(&mut self) -> Result<(), Refusal> {
        match &self.key {
            Some(key) if key.line != self.line || self.characters - key.characters > MAX_KEY => self.drop_key(),
            _ => Ok(()),
        }
    }

    fn drop_key(&mut self) -> Result<(), Refusal> {
        match self.key.take() {
            Some(key) if key.is_required => Err(Refusal {
                offset: key.start,
                message: "a key without a colon".into(),
            }),
            _ => Ok(()),
        }
    }

    fn save_key(&mut self) -> Result<(), Refusal> {
        if self.allow_key {
            self.drop_key()?;
            self.key = Some(PossibleKey {
                token: self.tokens.len(),
                is_required: usize::try_from(self.indent) == Ok(self.column),
                start: self.at,
                characters: self.characters,
                line: self.line,
                column: self.column,
            });
        }
        Ok(())
    }

    fn unwind(&mut self, column: isize) {
        while self.indent > column {
            self.indent = self.outer_indents.pop().unwrap_or(-1);
            self.push(Kind::BlockEnd, self.at);
        }
    }

    /// Begins a collection if the column is deeper than the innermost one.
    fn open(&mut self, column: usize) -> Result<bool, Refusal> {
        let column = isize::try_from(column).unwrap_or(isize::MAX);
        if self.indent >= column {
            return Ok(false);
        }
        if self.outer_indents.len() >= MAX_DEPTH {
            return self.refuse("collections are nested too deeply");
        }
        self.outer_indents.push(self.indent);
        self.indent = column;
        Ok(true)
    }

    fn entry(&mut self) -> Result<(), Refusal> {
        if !self.allow_key {
            return self.refuse("a list entry is not allowed here");
        }
        self.indicator(Kind::SequenceStart, Kind::Entry)
    }

    fn explicit_key(&mut self) -> Result<(), Refusal> {
        if !self.allow_key {
            return self.refuse("a key is not allowed here");
        }
        self.indicator(Kind::MappingStart, Kind::Key)
    }

    fn indicator(&mut self, collection: Kind, token: Kind) -> Result<(), Refusal> {
        if self.open(self.column)? {
            self.push(collection, self.at);
        }
        self.allow_key = true;
        self.drop_key()?;
        self.push(token, self.at);
        self.forward();
        Ok(())
    }

    fn value(&mut self) -> Result<(), Refusal> {
        if let Some(key) = self.key.take() {
            let token = |kind| Token {
                kind,
                start: key.start,
                end: key.start,
            };
            self.tokens.insert(key.token, token(Kind::Key));
            if self.open(key.column)? {
                self.tokens.insert(key.token, token(Kind::MappingStart));
            }
            self.allow_key = false;
        } else {
            if !self.allow_key {
                return self.refuse("a colon with a blank after it is not allowed here; quote the value");
            }
            if self.open(self.column)? {
                self.push(Kind::MappingStart, self.at);
            }
            self.allow_key = true;
        }
        self.push(Kind::Value, self.at);
        self.forward();
        Ok(())
    }
}
