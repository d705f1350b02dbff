//! Reads a file of a skill in chunks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use skillbox_model::{ContentEncoding, RelPath};
use skillbox_repository::{SkillDir, SkillReadError};

use super::list_docs::{similar_paths, unreadable_skill};
use crate::call_context::{CallContext, OperationOutcome};
use crate::loader_error::LoaderError;
use crate::skill_view::SkillView;
use crate::tool_interface::{ReadInput, ReadResult};

const DEFAULT_CHUNK_BYTES: u64 = 64 << 10;
const MAX_CHUNK_BYTES: u64 = 1 << 20;
/// Larger files are refused, because every call reads the whole file: all bytes decide whether its chunks are text.
const MAX_FILE_BYTES: u64 = 16 << 20;

impl CallContext<'_> {
    /// Reads one chunk of a file: as text if the file is text, as base64 otherwise.
    pub fn read(&self, input: &ReadInput) -> Result<OperationOutcome<ReadResult>, LoaderError> {
        let skill = self.find_skill(&input.skill)?;
        let path = RelPath::parse_user_input(&input.path).map_err(|source| LoaderError::InvalidPath {
            path: input.path.clone(),
            field: "path",
            source,
        })?;
        let dir = self.open_dir(skill)?;
        let bytes = dir
            .read_file(&path, MAX_FILE_BYTES)
            .map_err(|error| read_error(skill, &dir, &path, error))?;
        let limit = input.limit.unwrap_or(DEFAULT_CHUNK_BYTES).clamp(1, MAX_CHUNK_BYTES);
        let chunk = cut_chunk(&bytes, input.offset.unwrap_or(0), limit);
        let result = ReadResult {
            skill: skill.name.clone(),
            path: path.to_string(),
            size_bytes: bytes.len() as u64,
            offset: chunk.offset,
            content: chunk.content,
            encoding: chunk.encoding,
            next_offset: chunk.next_offset,
        };
        Ok(OperationOutcome {
            text: result.content.clone(),
            result,
            delta: Default::default(),
        })
    }
}

struct Chunk {
    offset: u64,
    content: String,
    encoding: Option<ContentEncoding>,
    next_offset: Option<u64>,
}

/// Cuts a chunk out of a file. Text is never cut inside a character, so a chunk of text may start a few bytes earlier or
/// be a few bytes shorter than requested.
fn cut_chunk(bytes: &[u8], offset: u64, limit: u64) -> Chunk {
    let length = bytes.len();
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let clamp = |offset: u64| usize::try_from(offset).unwrap_or(length).min(length);
    let (mut start, mut end) = (clamp(offset), clamp(offset.saturating_add(limit)));
    if let Some(text) = text {
        start = text.floor_char_boundary(start);
        end = text.floor_char_boundary(end);
        if end <= start {
            // A limit smaller than one character still returns that character.
            end = text.ceil_char_boundary((start + 1).min(length));
        }
    }
    Chunk {
        offset: start as u64,
        content: match text {
            Some(text) => text[start..end].to_owned(),
            None => STANDARD.encode(&bytes[start..end]),
        },
        encoding: text.is_none().then_some(ContentEncoding::Base64),
        next_offset: (end < length).then_some(end as u64),
    }
}

fn read_error(skill: &SkillView, dir: &SkillDir, path: &RelPath, error: SkillReadError) -> LoaderError {
    match error {
        // A link out of the skill is reported as a missing file.
        SkillReadError::Missing { .. } | SkillReadError::OutsideSkill { .. } | SkillReadError::NotAFile(_) => {
            let files = dir.tree_entries().unwrap_or_default();
            LoaderError::UnknownDoc {
                skill: skill.name.to_string(),
                path: path.to_string(),
                suggestions: similar_paths(&path.to_string(), files.iter().map(|file| &file.path)),
            }
        }
        SkillReadError::TooLarge { size, limit, .. } => LoaderError::TooLarge {
            skill: skill.name.to_string(),
            path: path.to_string(),
            size,
            limit,
        },
        other => unreadable_skill(skill, other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_chunks_keep_characters_whole() {
        let text = "aé技x".as_bytes();
        let first = cut_chunk(text, 0, 2);
        assert_eq!((first.content.as_str(), first.next_offset), ("a", Some(1)));
        let second = cut_chunk(text, 1, 1);
        assert_eq!((second.content.as_str(), second.next_offset), ("é", Some(3)));
        let inside = cut_chunk(text, 4, 10);
        assert_eq!(
            (inside.offset, inside.content.as_str(), inside.next_offset),
            (3, "技x", None)
        );
        let beyond = cut_chunk(text, 99, 10);
        assert_eq!((beyond.content.as_str(), beyond.next_offset), ("", None));
    }

    #[test]
    fn every_chunk_of_a_binary_file_is_base64() {
        let bytes = b"text\0\xff";
        assert_eq!(cut_chunk(bytes, 0, 3).content, "dGV4");
        assert_eq!(cut_chunk(bytes, 0, 3).encoding, Some(ContentEncoding::Base64));
    }

    proptest! {
        #[test]
        fn chunks_join_to_the_whole_file(text in "\\PC{0,40}", limit in 1_u64..9) {
            let mut whole = String::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let chunk = cut_chunk(text.as_bytes(), offset, limit);
                prop_assert!(chunk.next_offset.is_none_or(|next| next > offset));
                whole.push_str(&chunk.content);
                next = chunk.next_offset;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
