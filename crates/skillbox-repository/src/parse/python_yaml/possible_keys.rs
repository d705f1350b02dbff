//! Scalars and flow collections that are keys if a colon follows them.

use super::scanner::{PossibleKey, PythonYamlError, Scanner};

/// The maximum number of characters of a key.
const MAX_KEY_CHARS: usize = 1024;

impl Scanner<'_> {
    /// Forgets possible keys that are too long ago, on every level of flow collections.
    pub(super) fn drop_stale_possible_keys(&mut self) -> Result<(), PythonYamlError> {
        let (line, char_offset) = (self.line, self.char_offset);
        for level in &mut self.possible_keys {
            let is_stale = |key: &mut PossibleKey| key.line != line || char_offset - key.char_offset > MAX_KEY_CHARS;
            if let Some(key) = level.take_if(is_stale) {
                check_dropped(&key)?;
            }
        }
        Ok(())
    }

    /// Forgets the possible key on the current level, because no colon follows it.
    pub(super) fn drop_possible_key(&mut self) -> Result<(), PythonYamlError> {
        self.take_possible_key().map_or(Ok(()), |key| check_dropped(&key))
    }

    /// Removes the possible key on the current level.
    pub(super) fn take_possible_key(&mut self) -> Option<PossibleKey> {
        self.possible_keys.last_mut().and_then(Option::take)
    }

    /// Remembers that the next scalar or flow collection may be a key.
    pub(super) fn save_possible_key(&mut self) -> Result<(), PythonYamlError> {
        if self.allows_key {
            self.drop_possible_key()?;
            let key = PossibleKey {
                token_index: self.tokens.len(),
                is_required: !self.is_in_flow() && usize::try_from(self.indent) == Ok(self.column),
                start: self.at,
                char_offset: self.char_offset,
                line: self.line,
                column: self.column,
            };
            if let Some(level) = self.possible_keys.last_mut() {
                *level = Some(key);
            }
        }
        Ok(())
    }
}

fn check_dropped(key: &PossibleKey) -> Result<(), PythonYamlError> {
    if key.is_required {
        return Err(PythonYamlError {
            offset: key.start,
            message: "a key has no colon after it".into(),
        });
    }
    Ok(())
}
