//! Scans scalars of the reference tool's YAML subset: plain, quoted and block.

use super::scanner::{ReferenceYamlError, Scanner, TokenKind, is_blank_or_end, is_break, is_break_or_end};
use crate::parse::yaml::ScalarStyle;

impl Scanner<'_> {
    pub(super) fn scan_plain(&mut self) {
        let start = self.at;
        let mut end = self.at;
        let mut value = String::new();
        let mut blanks = String::new();
        while self.peek() != '#' {
            let before = self.at;
            loop {
                let c = self.peek();
                if is_blank_or_end(c) || c == ':' && is_blank_or_end(self.peek_at(1)) {
                    break;
                }
                if self.at == before {
                    value.push_str(&blanks);
                }
                value.push(c);
                self.forward();
            }
            if self.at == before {
                break;
            }
            self.allows_key = false;
            end = self.at;
            blanks = self.plain_blanks();
            let column = isize::try_from(self.column).unwrap_or(isize::MAX);
            if blanks.is_empty() || self.peek() == '#' || column < self.indent + 1 {
                break;
            }
        }
        self.push(TokenKind::Scalar(value, ScalarStyle::Plain), start);
        if let Some(token) = self.tokens.last_mut() {
            token.end = end;
        }
    }

    /// Skips the blanks and line breaks between two words and returns their value; empty if the scalar ends.
    fn plain_blanks(&mut self) -> String {
        let start = self.at;
        self.skip_while(|c| c == ' ');
        let Some(first) = peek_break(self) else {
            return " ".repeat(self.at - start);
        };
        self.forward();
        self.allows_key = true;
        if self.at_document_mark() {
            return String::new();
        }
        let mut more = String::new();
        loop {
            if self.peek() == ' ' {
                self.forward();
            } else if let Some(c) = self.take_break() {
                more.push(c);
                if self.at_document_mark() {
                    return String::new();
                }
            } else {
                return fold_breaks(first, &more);
            }
        }
    }

    pub(super) fn scan_quoted(&mut self, quote: char) -> Result<(), ReferenceYamlError> {
        let start = self.at;
        let mut value = String::new();
        self.forward();
        self.quoted_text(quote, &mut value)?;
        while self.peek() != quote {
            self.quoted_blanks(&mut value)?;
            self.quoted_text(quote, &mut value)?;
        }
        self.forward();
        self.push(TokenKind::Scalar(value, ScalarStyle::Quoted), start);
        Ok(())
    }

    fn quoted_text(&mut self, quote: char, value: &mut String) -> Result<(), ReferenceYamlError> {
        loop {
            let c = self.peek();
            if is_blank_or_end(c) {
                return Ok(());
            }
            if c == quote {
                if quote == '"' || self.peek_at(1) != '\'' {
                    return Ok(());
                }
                self.forward();
            } else if c == '\\' && quote == '"' {
                self.escape(value)?;
                continue;
            }
            value.push(c);
            self.forward();
        }
    }

    fn escape(&mut self, value: &mut String) -> Result<(), ReferenceYamlError> {
        self.forward();
        let c = self.peek();
        let plain = match c {
            '0' => '\0',
            'a' => '\x07',
            'b' => '\x08',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\x0b',
            'f' => '\x0c',
            'r' => '\r',
            'e' => '\x1b',
            ' ' | '"' | '/' | '\\' => c,
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            'x' | 'u' | 'U' => return self.code_point(value),
            c if is_break(c) => {
                self.take_break();
                value.push_str(&self.quoted_breaks()?);
                return Ok(());
            }
            _ => return self.error("unknown escape in a double-quoted text"),
        };
        value.push(plain);
        self.forward();
        Ok(())
    }

    /// Reads `xHH`, `uHHHH` or `UHHHHHHHH`. Two escapes that form a surrogate pair are one character.
    fn code_point(&mut self, value: &mut String) -> Result<(), ReferenceYamlError> {
        let code = self.hexadecimal()?;
        let c = match code {
            0xD800..=0xDBFF if self.rest().starts_with("\\u") => {
                self.forward();
                let low = self.hexadecimal()?;
                char::decode_utf16([code as u16, low as u16])
                    .next()
                    .and_then(Result::ok)
                    .filter(|_| low <= 0xFFFF)
            }
            _ => char::from_u32(code),
        };
        match c {
            Some(c) => value.push(c),
            None => return self.error("an escape that is not a Unicode character"),
        }
        Ok(())
    }

    /// Reads the letter that gives the number of digits, and the digits.
    fn hexadecimal(&mut self) -> Result<u32, ReferenceYamlError> {
        let length = match self.peek() {
            'x' => 2,
            'u' => 4,
            _ => 8,
        };
        self.forward();
        let mut code = 0_u32;
        for _ in 0..length {
            let Some(digit) = self.peek().to_digit(16) else {
                return self.error("an escape has too few hexadecimal digits");
            };
            code = code << 4 | digit;
            self.forward();
        }
        Ok(code)
    }

    fn quoted_blanks(&mut self, value: &mut String) -> Result<(), ReferenceYamlError> {
        let start = self.at;
        self.skip_while(|c| matches!(c, ' ' | '\t'));
        match peek_break(self) {
            Some(first) => {
                self.forward();
                let more = self.quoted_breaks()?;
                value.push_str(&fold_breaks(first, &more));
            }
            None if self.peek() == '\0' => return self.error("a quoted text never ends"),
            None => value.push_str(self.text_since(start)),
        }
        Ok(())
    }

    fn quoted_breaks(&mut self) -> Result<String, ReferenceYamlError> {
        let mut breaks = String::new();
        loop {
            if self.at_document_mark() {
                return self.error("a document marker inside a quoted text");
            }
            self.skip_while(|c| matches!(c, ' ' | '\t'));
            match self.take_break() {
                Some(c) => breaks.push(c),
                None => return Ok(breaks),
            }
        }
    }

    pub(super) fn scan_block(&mut self, style: char) -> Result<(), ReferenceYamlError> {
        let start = self.at;
        self.forward();
        let (chomping, increment) = self.block_header()?;
        let min_indent = usize::try_from(self.indent + 1).unwrap_or(0);
        let (indent, mut breaks) = match increment {
            Some(increment) => {
                let indent = min_indent.max(1) + increment - 1;
                (indent, self.block_breaks(indent))
            }
            None => self.detect_block_indent(min_indent),
        };
        let mut value = String::new();
        let mut last = None;
        while self.column == indent && self.peek() != '\0' {
            value.push_str(&breaks);
            let is_unindented = !matches!(self.peek(), ' ' | '\t');
            while !is_break_or_end(self.peek()) {
                value.push(self.peek());
                self.forward();
            }
            last = self.take_break();
            breaks = self.block_breaks(indent);
            let at_mark = min_indent == 0 && self.column == 0 && self.at_document_mark();
            if at_mark || self.column != indent || self.peek() == '\0' {
                break;
            }
            let continues_unindented = is_unindented && !matches!(self.peek(), ' ' | '\t');
            if style == '>' && last == Some('\n') && continues_unindented {
                if breaks.is_empty() {
                    value.push(' ');
                }
            } else {
                value.extend(last);
            }
        }
        if chomping != Some('-') {
            value.extend(last);
        }
        if chomping == Some('+') {
            value.push_str(&breaks);
        }
        self.push(TokenKind::Scalar(value, ScalarStyle::Block), start);
        Ok(())
    }

    fn block_header(&mut self) -> Result<(Option<char>, Option<usize>), ReferenceYamlError> {
        let (mut chomping, mut increment) = (None, None);
        for _ in 0..2 {
            let c = self.peek();
            match c {
                '+' | '-' if chomping.is_none() => chomping = Some(c),
                '0' if increment.is_none() => return self.error("a block text cannot be indented by 0"),
                '1'..='9' if increment.is_none() => increment = Some(c as usize - '0' as usize),
                _ => break,
            }
            self.forward();
        }
        if self.peek() != ' ' && !is_break_or_end(self.peek()) {
            return self.error("the header of a block text is wrong");
        }
        self.skip_while(|c| c == ' ');
        if self.peek() == '#' {
            self.skip_while(|c| !is_break_or_end(c));
        }
        if !is_break_or_end(self.peek()) {
            return self.error("the text of a block begins on the line after its header");
        }
        self.take_break();
        Ok((chomping, increment))
    }

    /// Returns the deepest column of blanks before the first word, including lines of blanks.
    fn detect_block_indent(&mut self, min_indent: usize) -> (usize, String) {
        let mut breaks = String::new();
        let mut longest = 0;
        loop {
            if self.peek() == ' ' {
                self.forward();
                longest = longest.max(self.column);
            } else if let Some(c) = self.take_break() {
                breaks.push(c);
            } else {
                return (min_indent.max(longest), breaks);
            }
        }
    }

    fn block_breaks(&mut self, indent: usize) -> String {
        let mut breaks = String::new();
        loop {
            while self.column < indent && self.peek() == ' ' {
                self.forward();
            }
            match self.take_break() {
                Some(c) => breaks.push(c),
                None => return breaks,
            }
        }
    }
}

/// Returns the value of the line break at the current position without skipping it.
fn peek_break(scanner: &Scanner<'_>) -> Option<char> {
    match scanner.peek() {
        '\u{85}' => Some('\n'),
        c if is_break(c) => Some(c),
        _ => None,
    }
}

/// Folds line breaks: one becomes a blank, several become one fewer; U+2028 and U+2029 are kept.
fn fold_breaks(first: char, more: &str) -> String {
    match (first, more) {
        ('\n', "") => " ".to_owned(),
        ('\n', _) => more.to_owned(),
        _ => format!("{first}{more}"),
    }
}
