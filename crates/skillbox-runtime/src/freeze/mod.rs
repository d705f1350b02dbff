//! Freezes skills: copies their files into immutable snapshots, so that the bytes that run are the bytes that were hashed.

mod copy;
mod freezer;
mod mount_table;
mod skill_watch;
mod snapshot_cache;

pub(crate) use freezer::SkillFreezer;
