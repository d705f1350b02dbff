//! Whose turn it is: most tests share the machine, a few that count or measure have it for themselves.
//!
//! Tests are processes under nextest and threads under `cargo test`; a pair of file locks serves both. The first lock
//! is a turnstile: a test that waits to be alone holds it, so that later ones queue up behind instead of overtaking.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Held for the length of a test.
#[derive(Debug)]
pub struct Turn {
    _room: File,
}

impl Turn {
    /// Together with others.
    pub fn shared() -> Self {
        Self::take(FlockOperation::LockShared)
    }

    /// With nobody else.
    pub fn alone() -> Self {
        Self::take(FlockOperation::LockExclusive)
    }

    fn take(how: FlockOperation) -> Self {
        let turnstile = lock_file("turnstile.lock");
        flock(&turnstile, FlockOperation::LockExclusive).expect("the turnstile");
        let room = lock_file("room.lock");
        flock(&room, how).expect("the room");
        Self { _room: room }
    }
}

fn lock_file(name: &str) -> File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .unwrap_or_else(|error| {
            panic!("{} cannot be opened: {error}", path.display());
        })
}
