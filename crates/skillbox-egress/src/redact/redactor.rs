//! The values of a run, ready to be removed from text.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use skillbox_model::{SecretName, SecretValue};

use super::pattern_set::PatternSet;
use super::stream::RedactStream;

/// Replaces the values of a run's secrets by `[secret NAME]`.
///
/// A value is found as it is, in base64 (both alphabets, at each alignment), in hexadecimal digits, with any of its bytes
/// as percent escapes, and with any of its characters as the backslash escapes of JSON; base64 and digits also across line
/// breaks, blanks and colons. Without values, everything passes unchanged.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<PatternSet>>);

/// The error for values that cannot be removed from text together. It never contains a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedactorError {
    /// Too many values.
    #[error("a run can use at most {max} secrets, not {0}", max = Redactor::MAX_VALUES)]
    TooManyValues(usize),
    /// The automaton would need too much memory.
    #[error("the values of the secrets of a run have at most {max} bytes together, not {0}", max = Redactor::MAX_TOTAL_BYTES)]
    TooManyBytes(usize),
    /// The text that replaces values would contain a value.
    #[error("the value of the secret {0} is part of the text `[secret NAME]` that replaces values")]
    ValueInReplacement(SecretName),
    /// The automaton could not be built.
    #[error("the search for the values of secrets could not be prepared")]
    Automaton,
}

impl Redactor {
    /// Maximum number of values.
    pub const MAX_VALUES: usize = 64;
    /// Maximum length of all values together.
    pub const MAX_TOTAL_BYTES: usize = 64 << 10;

    /// Prepares the search for these values.
    pub fn new<'a>(
        secrets: impl IntoIterator<Item = (&'a SecretName, &'a SecretValue)>,
    ) -> Result<Self, RedactorError> {
        let values: Vec<(SecretName, &str)> = secrets
            .into_iter()
            .map(|(name, value)| (name.clone(), value.expose()))
            .collect();
        if values.is_empty() {
            return Ok(Self::default());
        }
        if values.len() > Self::MAX_VALUES {
            return Err(RedactorError::TooManyValues(values.len()));
        }
        let bytes = values.iter().map(|(_, value)| value.len()).sum();
        if bytes > Self::MAX_TOTAL_BYTES {
            return Err(RedactorError::TooManyBytes(bytes));
        }
        let replacements: String = values.iter().map(|(name, _)| format!("[secret {name}]")).collect();
        if let Some((name, _)) = values.iter().find(|(_, value)| replacements.contains(value)) {
            return Err(RedactorError::ValueInReplacement(name.clone()));
        }
        let patterns = PatternSet::build(&values).map_err(|_| RedactorError::Automaton)?;
        Ok(Self(Some(Arc::new(patterns))))
    }

    /// Whether there is no value to remove.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Begins a stream.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.0.clone())
    }

    /// Redacts a whole text.
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Redacts whole data.
    pub fn redact_bytes<'t>(&self, data: &'t [u8]) -> Cow<'t, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(data);
        }
        let mut stream = self.stream();
        let mut output = Vec::with_capacity(data.len());
        stream.push(data, &mut output);
        stream.finish(&mut output);
        if stream.found().is_empty() {
            Cow::Borrowed(data)
        } else {
            Cow::Owned(output)
        }
    }

    /// Reads to the end, and returns the secrets whose values occur.
    pub fn find(&self, mut source: impl Read) -> io::Result<Vec<SecretName>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let mut stream = self.stream();
        let mut chunk = vec![0; 64 << 10];
        let mut output = Vec::new();
        loop {
            match source.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => stream.push(&chunk[..count], &mut output),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            output.clear();
        }
        stream.finish(&mut output);
        Ok(stream.found())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.as_ref().map(|patterns| patterns.names());
        f.debug_tuple("Redactor").field(&names.unwrap_or_default()).finish()
    }
}
