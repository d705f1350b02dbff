//! A lock on the machine: most tests share it, a few that count processes or measure time hold it exclusively.
//!
//! Tests are processes under nextest and threads under `cargo test`; file locks serve both. There are two of them. A
//! test takes the queue lock before it waits for the machine lock, so that a test that waits for exclusive use is not
//! overtaken by later ones.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Held for the length of a test.
#[derive(Debug)]
pub struct MachineLock {
    _file: File,
}

impl MachineLock {
    /// Shares the machine with other tests.
    pub fn shared() -> Self {
        Self::acquire(FlockOperation::LockShared)
    }

    /// Keeps other tests off the machine.
    pub fn exclusive() -> Self {
        Self::acquire(FlockOperation::LockExclusive)
    }

    fn acquire(operation: FlockOperation) -> Self {
        let queue = open_lock_file("queue.lock");
        flock(&queue, FlockOperation::LockExclusive).expect("the queue lock");
        let machine = open_lock_file("machine.lock");
        flock(&machine, operation).expect("the machine lock");
        Self { _file: machine }
    }
}

fn open_lock_file(name: &str) -> File {
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
