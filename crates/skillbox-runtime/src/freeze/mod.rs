//! Freezes skills: copies their files into immutable snapshots, so that the bytes that run are the bytes that were hashed.

mod copy;
mod freezer;
mod watched_snapshots;

pub(crate) use freezer::SkillFreezer;
