//! Reads the words of a shell command line and removes their quotes.

use super::shell_refusal::ShellRefusal;

/// One word after quote removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text without quotes and escapes. Expansions are kept as written.
    pub(crate) text: String,
    /// Whether bash passes exactly this text: it contains no variable, glob, brace or tilde.
    pub(crate) is_literal: bool,
}

impl Word {
    /// A word that no shell expands.
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_literal: true,
        }
    }
}

/// A position in a command line.
pub(crate) struct ShellCursor<'c> {
    rest: &'c str,
}

impl<'c> ShellCursor<'c> {
    pub(crate) fn new(command: &'c str) -> Self {
        Self { rest: command }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    /// Skips `text` if the rest starts with it, and returns whether it does.
    pub(crate) fn skip(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return false;
        };
        self.rest = rest;
        true
    }

    /// Skips blanks and line continuations between words. Bash removes every line continuation before it splits words,
    /// so one inside a word or an operator joins what this lexer would read as two. There, it is refused.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.skip("\\\n") {
                return;
            }
        }
    }

    /// Skips to the end of the line, as after `#`.
    pub(crate) fn skip_line(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    pub(crate) fn skip_digits(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
    }

    /// Whether digits directly before `<` or `>` name a descriptor, as in `2>&1`.
    pub(crate) fn at_descriptor_redirection(&self) -> bool {
        let after = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        after.len() < self.rest.len() && after.starts_with(['<', '>'])
    }

    pub(crate) fn at_word(&self) -> bool {
        self.peek().is_some_and(|c| !ends_word(c))
    }

    /// Reads the word that starts here.
    pub(crate) fn read_word(&mut self) -> Result<Word, ShellRefusal> {
        let mut word = Word::literal(self.read_plain_run());
        while let Some(c) = self.peek().filter(|c| !ends_word(*c)) {
            self.next();
            match c {
                '\'' => self.read_single_quoted(&mut word)?,
                '"' => self.read_double_quoted(&mut word)?,
                '\\' => match self.next() {
                    None => return Err(ShellRefusal::TrailingBackslash),
                    Some('\n') => return Err(ShellRefusal::LineContinuation),
                    Some(escaped) => word.text.push(escaped),
                },
                '`' => return Err(ShellRefusal::Substitution),
                '$' => {
                    // Outside double quotes, `$'…'` and `$"…"` are special kinds of quotes.
                    if self.starts_with("'") || self.starts_with("\"") {
                        return Err(ShellRefusal::Expansion);
                    }
                    self.read_expansion(&mut word)?;
                }
                _ => {
                    word.is_literal &= !matches!(c, '*' | '?' | '[' | '{' | '}' | '~') || is_lone_brace(c, &word, self);
                    word.text.push(c);
                }
            }
        }
        // A parenthesis directly after a word starts an extended glob, an array or a function.
        if self.starts_with("(") {
            return Err(ShellRefusal::Subshell);
        }
        Ok(word)
    }

    /// Reads a run of characters without special meaning at once: most words consist of nothing else.
    fn read_plain_run(&mut self) -> &'c str {
        let is_plain =
            |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'=');
        let end = self.rest.bytes().position(|b| !is_plain(&b)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    fn read_single_quoted(&mut self, word: &mut Word) -> Result<(), ShellRefusal> {
        let (inside, rest) = self.rest.split_once('\'').ok_or(ShellRefusal::UnclosedQuote)?;
        word.text.push_str(inside);
        self.rest = rest;
        Ok(())
    }

    fn read_double_quoted(&mut self, word: &mut Word) -> Result<(), ShellRefusal> {
        loop {
            match self.next().ok_or(ShellRefusal::UnclosedQuote)? {
                '"' => return Ok(()),
                '`' => return Err(ShellRefusal::Substitution),
                '$' => self.read_expansion(word)?,
                '\\' => match self.next().ok_or(ShellRefusal::UnclosedQuote)? {
                    '\n' => return Err(ShellRefusal::LineContinuation),
                    escaped @ ('$' | '`' | '"' | '\\') => word.text.push(escaped),
                    // Inside double quotes, a backslash before any other character is literal.
                    other => word.text.extend(['\\', other]),
                },
                c => word.text.push(c),
            }
        }
    }

    /// Reads what follows a `$`: a plain variable, or nothing if the dollar sign is literal.
    fn read_expansion(&mut self, word: &mut Word) -> Result<(), ShellRefusal> {
        let braced = self.skip("{");
        let name_length = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let name = &self.rest[..name_length];
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name {
            self.rest = &self.rest[name_length..];
            if braced && !self.skip("}") {
                return Err(ShellRefusal::Expansion);
            }
            word.is_literal = false;
            word.text.extend(["$", name]);
            return Ok(());
        }
        match self.peek() {
            _ if braced => Err(ShellRefusal::Expansion),
            Some('(') => Err(ShellRefusal::Substitution),
            Some('\\') => Err(ShellRefusal::LineContinuation),
            Some(c) if c.is_ascii_digit() || matches!(c, '[' | '@' | '*' | '#' | '?' | '$' | '!' | '-') => {
                Err(ShellRefusal::Expansion)
            }
            _ => {
                word.text.push('$');
                Ok(())
            }
        }
    }
}

/// A brace that is a whole word is a keyword, and keywords are recognised by their text.
fn is_lone_brace(c: char, word: &Word, cursor: &ShellCursor<'_>) -> bool {
    matches!(c, '{' | '}') && word.text.is_empty() && cursor.peek().is_none_or(ends_word)
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}
