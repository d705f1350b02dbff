//! Reads one file of a skill, in pieces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use skillbox_model::{ContentEncoding, RelPath};
use skillbox_repository::{SkillDir, SkillReadError};

use super::doc_names::{nearest_paths, unreadable};
use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::skill_view::SkillView;
use crate::tools::{ReadInput, ReadResult};

const DEFAULT_LIMIT: u64 = 64 << 10;
const GREATEST_LIMIT: u64 = 1 << 20;
/// A file is classified as a whole, so that all its pieces are text, or none is.
const LARGEST_FILE: u64 = 16 << 20;

impl Engine<'_> {
    /// One piece of a file: text where the file is text, base64 otherwise.
    pub fn read(&self, input: &ReadInput) -> Result<Answer<ReadResult>, LoaderError> {
        let skill = self.skill(&input.skill)?;
        let path = RelPath::parse_typed(&input.path).map_err(|source| LoaderError::BadPath {
            path: input.path.clone(),
            field: "path",
            source,
        })?;
        let dir = self.open(skill)?;
        let bytes = dir
            .read(&path, LARGEST_FILE)
            .map_err(|error| refused(skill, &dir, &path, error))?;
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, GREATEST_LIMIT);
        let piece = piece(&bytes, input.offset.unwrap_or(0), limit);
        let result = ReadResult {
            skill: skill.name.clone(),
            path: path.to_string(),
            size_bytes: bytes.len() as u64,
            offset: piece.offset,
            content: piece.content,
            encoding: piece.encoding,
            next_offset: piece.next_offset,
        };
        Ok(Answer {
            text: result.content.clone(),
            result,
            delta: Default::default(),
        })
    }
}

struct Piece {
    offset: u64,
    content: String,
    encoding: Option<ContentEncoding>,
    next_offset: Option<u64>,
}

/// Text is never cut inside a character, so a piece of text may be a few bytes shorter or start earlier.
fn piece(bytes: &[u8], offset: u64, limit: u64) -> Piece {
    let length = bytes.len();
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let at = |place: u64| usize::try_from(place).unwrap_or(length).min(length);
    let (mut start, mut end) = (at(offset), at(offset.saturating_add(limit)));
    if let Some(text) = text {
        start = text.floor_char_boundary(start);
        end = text.floor_char_boundary(end);
        if end <= start {
            // A limit smaller than one character still moves on.
            end = text.ceil_char_boundary((start + 1).min(length));
        }
    }
    let part = &bytes[start..end];
    Piece {
        offset: start as u64,
        content: match text {
            Some(text) => text[start..end].to_owned(),
            None => STANDARD.encode(part),
        },
        encoding: text.is_none().then_some(ContentEncoding::Base64),
        next_offset: (end < length).then_some(end as u64),
    }
}

fn refused(skill: &SkillView, dir: &SkillDir, path: &RelPath, error: SkillReadError) -> LoaderError {
    match error {
        // What leads out of the skill does not exist for a caller.
        SkillReadError::Missing { .. } | SkillReadError::Leaves { .. } | SkillReadError::NotAFile(_) => {
            let files = dir.files().unwrap_or_default();
            LoaderError::UnknownDoc {
                skill: skill.name.to_string(),
                path: path.to_string(),
                nearest: nearest_paths(&path.to_string(), files.iter().map(|file| &file.path)),
            }
        }
        SkillReadError::TooLarge { size, limit, .. } => LoaderError::TooLarge {
            skill: skill.name.to_string(),
            path: path.to_string(),
            size,
            limit,
        },
        other => unreadable(skill, other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_of_text_keep_characters_whole() {
        let text = "aé技x".as_bytes();
        let first = piece(text, 0, 2);
        assert_eq!((first.content.as_str(), first.next_offset), ("a", Some(1)));
        let second = piece(text, 1, 1);
        assert_eq!((second.content.as_str(), second.next_offset), ("é", Some(3)));
        let inside = piece(text, 4, 10);
        assert_eq!(
            (inside.offset, inside.content.as_str(), inside.next_offset),
            (3, "技x", None)
        );
        let beyond = piece(text, 99, 10);
        assert_eq!((beyond.content.as_str(), beyond.next_offset), ("", None));
    }

    #[test]
    fn other_bytes_are_base64_from_first_to_last() {
        let bytes = b"text\0\xff";
        assert_eq!(piece(bytes, 0, 3).content, "dGV4");
        assert_eq!(piece(bytes, 0, 3).encoding, Some(ContentEncoding::Base64));
    }

    proptest! {
        #[test]
        fn pieces_make_the_file_again(text in "\\PC{0,40}", limit in 1_u64..9) {
            let mut whole = String::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let piece = piece(text.as_bytes(), offset, limit);
                prop_assert!(piece.next_offset.is_none_or(|next| next > offset));
                whole.push_str(&piece.content);
                next = piece.next_offset;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
