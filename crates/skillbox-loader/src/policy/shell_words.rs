//! Reads the words of a shell command line with their quotes resolved.

use super::shell::ShellRefusal;

/// One word after quote removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text with quotes and escapes resolved; expansions stand in it as written.
    pub(crate) text: String,
    /// Whether bash passes exactly this text: no variable, glob, brace or tilde is in it.
    pub(crate) exact: bool,
}

impl Word {
    /// A word that no shell will look at.
    pub(crate) fn exact(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            exact: true,
        }
    }
}

/// A place in a command line.
pub(crate) struct Cursor<'c> {
    rest: &'c str,
}

impl<'c> Cursor<'c> {
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

    pub(crate) fn take(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return false;
        };
        self.rest = rest;
        true
    }

    /// Blanks, and line breaks that a backslash hides. Bash takes such breaks out before it looks for words, so
    /// that one inside a word or an operator can join what we would read apart; there they are refused.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.take("\\\n") {
                return;
            }
        }
    }

    /// Up to the end of the line, as after `#`.
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

    /// Takes the word that starts here.
    pub(crate) fn word(&mut self) -> Result<Word, ShellRefusal> {
        let mut word = Word::exact(self.plain_run());
        while let Some(c) = self.peek().filter(|c| !ends_word(*c)) {
            self.next();
            match c {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => match self.next() {
                    None => return Err(ShellRefusal::OpenEscape),
                    Some('\n') => return Err(ShellRefusal::BrokenWord),
                    Some(escaped) => word.text.push(escaped),
                },
                '`' => return Err(ShellRefusal::Substitution),
                '$' => {
                    // Outside double quotes, `$'…'` and `$"…"` are quotes of their own kind.
                    if self.starts_with("'") || self.starts_with("\"") {
                        return Err(ShellRefusal::Expansion);
                    }
                    self.expansion(&mut word)?;
                }
                _ => {
                    word.exact &= !matches!(c, '*' | '?' | '[' | '{' | '}' | '~') || is_lone_brace(c, &word, self);
                    word.text.push(c);
                }
            }
        }
        // A parenthesis that touches a word makes it an extended glob, an array or a function.
        if self.starts_with("(") {
            return Err(ShellRefusal::Subshell);
        }
        Ok(word)
    }

    /// Characters that mean themselves wherever they stand, taken at once: most words are nothing else.
    fn plain_run(&mut self) -> &'c str {
        let is_plain =
            |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'=');
        let end = self.rest.bytes().position(|b| !is_plain(&b)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), ShellRefusal> {
        let (inside, rest) = self.rest.split_once('\'').ok_or(ShellRefusal::OpenQuote)?;
        word.text.push_str(inside);
        self.rest = rest;
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), ShellRefusal> {
        loop {
            match self.next().ok_or(ShellRefusal::OpenQuote)? {
                '"' => return Ok(()),
                '`' => return Err(ShellRefusal::Substitution),
                '$' => self.expansion(word)?,
                '\\' => match self.next().ok_or(ShellRefusal::OpenQuote)? {
                    '\n' => return Err(ShellRefusal::BrokenWord),
                    escaped @ ('$' | '`' | '"' | '\\') => word.text.push(escaped),
                    // Inside double quotes a backslash before anything else is itself.
                    other => word.text.extend(['\\', other]),
                },
                c => word.text.push(c),
            }
        }
    }

    /// What follows a `$`: a plain variable, or a dollar sign that means itself.
    fn expansion(&mut self, word: &mut Word) -> Result<(), ShellRefusal> {
        let braced = self.take("{");
        let name_length = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let name = &self.rest[..name_length];
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name {
            self.rest = &self.rest[name_length..];
            if braced && !self.take("}") {
                return Err(ShellRefusal::Expansion);
            }
            word.exact = false;
            word.text.extend(["$", name]);
            return Ok(());
        }
        match self.peek() {
            _ if braced => Err(ShellRefusal::Expansion),
            Some('(') => Err(ShellRefusal::Substitution),
            Some('\\') => Err(ShellRefusal::BrokenWord),
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

/// A brace that is a word of its own is a keyword, and keywords are told by their text.
fn is_lone_brace(c: char, word: &Word, cursor: &Cursor<'_>) -> bool {
    matches!(c, '{' | '}') && word.text.is_empty() && cursor.peek().is_none_or(ends_word)
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}
