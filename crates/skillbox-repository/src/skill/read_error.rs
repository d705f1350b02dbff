//! Why a skill could not be read.

use std::io;
use std::path::PathBuf;

/// Why a skill, or one of its files, could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SkillReadError {
    /// The skill has no such file.
    #[error("{path} does not exist in the skill {skill}", path = .path.display(), skill = .skill.display())]
    Missing {
        /// The directory of the skill.
        skill: PathBuf,
        /// The path below the directory.
        path: PathBuf,
    },
    /// The path resolves to a file outside the skill.
    #[error("{path} points outside the skill {skill}", path = .path.display(), skill = .skill.display())]
    OutsideSkill {
        /// The directory of the skill.
        skill: PathBuf,
        /// The path below the directory.
        path: PathBuf,
    },
    /// The path is a directory, a FIFO, a socket or a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file is larger than the limit.
    #[error("{path} has {size} bytes, more than the {limit} allowed", path = .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the file.
        size: u64,
        /// The maximum size.
        limit: u64,
    },
    /// The file is not text.
    #[error("{} is not UTF-8 text (byte {})", .path.display(), .source.valid_up_to())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Where the first invalid byte is.
        source: std::str::Utf8Error,
    },
    /// A file is larger than a file of a skill may be.
    #[error("{path} has {size} bytes, more than the {limit} that a file of a skill may have (setting max_skill_file_bytes)", path = .path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the file, or what was read of it.
        size: u64,
        /// The maximum size.
        limit: u64,
    },
    /// The caller does not need the result any more.
    #[error("reading the skill {} was cancelled", .0.display())]
    Cancelled(PathBuf),
    /// The tree has too many levels, files or bytes.
    #[error("the skill {} has more than {limit} {what}", .skill.display())]
    TreeTooLarge {
        /// The directory of the skill.
        skill: PathBuf,
        /// The limit.
        limit: u64,
        /// The unit of the limit, with the setting that changes it.
        what: &'static str,
    },
    /// A system call failed.
    #[error("{} cannot be read", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}
