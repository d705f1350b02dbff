//! Scans scalars: plain, quoted and block.

use super::rules::Rules;
use super::scanner::{PythonYamlError, Scanner, TokenKind, is_blank_or_end, is_line_break, is_line_break_or_end};
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
                if self.ends_plain_word(c) {
                    break;
                }
                if self.at == before {
                    value.push_str(&blanks);
                }
                value.push(c);
                self.advance();
            }
            if self.at == before {
                break;
            }
            self.allows_key = false;
            end = self.at;
            blanks = self.scan_plain_blanks();
            let column = isize::try_from(self.column).unwrap_or(isize::MAX);
            let is_outdented = !self.is_in_flow() && column < self.indent + 1;
            if blanks.is_empty() || self.peek() == '#' || is_outdented {
                break;
            }
        }
        self.push(TokenKind::Scalar(value, ScalarStyle::Plain), start);
        if let Some(token) = self.tokens.last_mut() {
            token.end = end;
        }
    }

    /// Whether `c`, at the current position, is not part of a plain word.
    fn ends_plain_word(&self, c: char) -> bool {
        let is_flow_indicator = |c: char| self.is_in_flow() && matches!(c, ',' | '[' | ']' | '{' | '}');
        let ends_key = |next: char| is_blank_or_end(next) || is_flow_indicator(next);
        is_blank_or_end(c)
            || c == ':' && ends_key(self.peek_at(1))
            || is_flow_indicator(c)
            || c == '?' && self.is_in_flow()
    }

    /// Skips the blanks and line breaks after a word and returns what they contribute to the scalar. The result is
    /// empty if the scalar ends.
    fn scan_plain_blanks(&mut self) -> String {
        let start = self.at;
        self.skip_while(|c| c == ' ');
        let blanks = self.at - start;
        let Some(first) = self.take_line_break() else {
            return " ".repeat(blanks);
        };
        self.allows_key = true;
        if self.is_at_document_marker() {
            return String::new();
        }
        let mut more = String::new();
        loop {
            if self.peek() == ' ' {
                self.advance();
            } else if let Some(c) = self.take_line_break() {
                more.push(c);
                if self.is_at_document_marker() {
                    return String::new();
                }
            } else {
                return fold_line_breaks(first, &more);
            }
        }
    }

    pub(super) fn scan_quoted(&mut self, quote: char) -> Result<(), PythonYamlError> {
        let start = self.at;
        let mut value = String::new();
        self.advance();
        self.scan_quoted_text(quote, &mut value)?;
        while self.peek() != quote {
            self.scan_quoted_blanks(&mut value)?;
            self.scan_quoted_text(quote, &mut value)?;
        }
        self.advance();
        self.push(TokenKind::Scalar(value, ScalarStyle::Quoted), start);
        Ok(())
    }

    fn scan_quoted_text(&mut self, quote: char, value: &mut String) -> Result<(), PythonYamlError> {
        loop {
            let c = self.peek();
            if is_blank_or_end(c) {
                return Ok(());
            }
            if c == quote {
                if quote == '"' || self.peek_at(1) != '\'' {
                    return Ok(());
                }
                self.advance();
            } else if c == '\\' && quote == '"' {
                self.scan_escape(value)?;
                continue;
            }
            value.push(c);
            self.advance();
        }
    }

    fn scan_escape(&mut self, value: &mut String) -> Result<(), PythonYamlError> {
        self.advance();
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
            'x' | 'u' | 'U' => return self.scan_code_point(value),
            c if is_line_break(c) => {
                self.take_line_break();
                value.push_str(&self.scan_quoted_breaks()?);
                return Ok(());
            }
            _ => return self.error("a double-quoted text contains an unknown escape"),
        };
        value.push(plain);
        self.advance();
        Ok(())
    }

    /// Reads `xHH`, `uHHHH` or `UHHHHHHHH`. Two escapes that form a surrogate pair are one character.
    fn scan_code_point(&mut self, value: &mut String) -> Result<(), PythonYamlError> {
        let code = self.scan_hex_digits()?;
        let c = match code {
            0xD800..=0xDBFF if self.rest().starts_with("\\u") => {
                self.advance();
                let low = self.scan_hex_digits()?;
                char::decode_utf16([code as u16, low as u16])
                    .next()
                    .and_then(Result::ok)
                    .filter(|_| low <= 0xFFFF)
            }
            _ => char::from_u32(code),
        };
        match c {
            Some(c) => value.push(c),
            None => return self.error("an escape is not a Unicode character"),
        }
        Ok(())
    }

    /// Reads the letter that determines the number of digits, then the digits.
    fn scan_hex_digits(&mut self) -> Result<u32, PythonYamlError> {
        let length = match self.peek() {
            'x' => 2,
            'u' => 4,
            _ => 8,
        };
        self.advance();
        let mut code = 0_u32;
        for _ in 0..length {
            let Some(digit) = self.peek().to_digit(16) else {
                return self.error("an escape has too few hexadecimal digits");
            };
            code = code << 4 | digit;
            self.advance();
        }
        Ok(code)
    }

    fn scan_quoted_blanks(&mut self, value: &mut String) -> Result<(), PythonYamlError> {
        let start = self.at;
        self.skip_while(|c| matches!(c, ' ' | '\t'));
        let blanks = self.at;
        match self.take_line_break() {
            Some(first) => {
                let more = self.scan_quoted_breaks()?;
                value.push_str(&fold_line_breaks(first, &more));
            }
            None if self.peek() == '\0' => return self.error("a quoted text is never closed"),
            None => value.push_str(&self.text_since(start)[..blanks - start]),
        }
        Ok(())
    }

    fn scan_quoted_breaks(&mut self) -> Result<String, PythonYamlError> {
        let mut breaks = String::new();
        loop {
            if self.is_at_document_marker() {
                return self.error("a quoted text contains a document marker");
            }
            self.skip_while(|c| matches!(c, ' ' | '\t'));
            match self.take_line_break() {
                Some(c) => breaks.push(c),
                None => return Ok(breaks),
            }
        }
    }

    pub(super) fn scan_block_scalar(&mut self, style: char) -> Result<(), PythonYamlError> {
        let start = self.at;
        self.advance();
        let (chomping, increment) = self.scan_block_header()?;
        let lowest = usize::from(self.rules == Rules::PyYaml);
        let min_indent = usize::try_from(self.indent + 1).unwrap_or(0).max(lowest);
        let (indent, mut breaks) = match increment {
            Some(increment) => {
                let indent = min_indent.max(1) + increment - 1;
                (indent, self.scan_block_breaks(indent))
            }
            None => self.detect_block_indent(min_indent),
        };
        let mut value = String::new();
        let mut last = None;
        while self.column == indent && self.peek() != '\0' {
            value.push_str(&breaks);
            let is_unindented = !matches!(self.peek(), ' ' | '\t');
            while !is_line_break_or_end(self.peek()) {
                value.push(self.peek());
                self.advance();
            }
            last = self.take_line_break();
            breaks = self.scan_block_breaks(indent);
            let at_mark = min_indent == 0 && self.column == 0 && self.is_at_document_marker();
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

    fn scan_block_header(&mut self) -> Result<(Option<char>, Option<usize>), PythonYamlError> {
        let (mut chomping, mut increment) = (None, None);
        for _ in 0..2 {
            let c = self.peek();
            match c {
                '+' | '-' if chomping.is_none() => chomping = Some(c),
                '0' if increment.is_none() => return self.error("a block text cannot be indented by 0"),
                '1'..='9' if increment.is_none() => increment = Some(c as usize - '0' as usize),
                _ => break,
            }
            self.advance();
        }
        if self.peek() != ' ' && !is_line_break_or_end(self.peek()) {
            return self.error("the header of a block text is not valid");
        }
        self.skip_while(|c| c == ' ');
        if self.peek() == '#' {
            self.skip_while(|c| !is_line_break_or_end(c));
        }
        if !is_line_break_or_end(self.peek()) {
            return self.error("the text of a block must begin on the line after its header");
        }
        self.take_line_break();
        Ok((chomping, increment))
    }

    /// Returns the indentation of a block text, which is that of its most indented line up to the first word, and the
    /// line breaks before that word.
    fn detect_block_indent(&mut self, min_indent: usize) -> (usize, String) {
        let mut breaks = String::new();
        let mut longest = 0;
        loop {
            if self.peek() == ' ' {
                self.advance();
                longest = longest.max(self.column);
            } else if let Some(c) = self.take_line_break() {
                breaks.push(c);
            } else {
                return (min_indent.max(longest), breaks);
            }
        }
    }

    fn scan_block_breaks(&mut self, indent: usize) -> String {
        let mut breaks = String::new();
        loop {
            while self.column < indent && self.peek() == ' ' {
                self.advance();
            }
            match self.take_line_break() {
                Some(c) => breaks.push(c),
                None => return breaks,
            }
        }
    }
}

/// Folds line breaks: a single one becomes a blank, and of several the first is removed. U+2028 and U+2029 are kept.
fn fold_line_breaks(first: char, more: &str) -> String {
    match (first, more) {
        ('\n', "") => " ".to_owned(),
        ('\n', _) => more.to_owned(),
        _ => format!("{first}{more}"),
    }
}
