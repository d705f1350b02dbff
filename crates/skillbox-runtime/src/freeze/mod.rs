//! Freezes skills: the bytes that are hashed are the bytes that run.

mod copy;
mod freezer;
mod watched_snapshots;

pub(crate) use freezer::SkillFreezer;
