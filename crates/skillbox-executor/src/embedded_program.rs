//! The small program that skillbox carries with it: pid 1 of containers, and the spawner of sandboxes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use skillbox_sandbox::{Spawner, SpawnerError};

/// Its bytes, made by the build script: linked statically, for whatever image it has to run in.
pub(crate) const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/skillbox-runner"));

/// Starts a spawner that lasts.
///
/// Every sandbox begins as a copy of its spawner, and lets go of that copy in the time of a run: a small program makes
/// short runs. Where it cannot be started, our own program is the spawner, which has to call
/// [`skillbox_sandbox::become_spawner_if_asked`]. So it is for ordinary users in any case: rules of a host about who may
/// make namespaces go by the path of a program, and this one has none.
pub fn start_spawner(own_program: &Path) -> Result<Spawner, SpawnerError> {
    if rustix::process::geteuid().is_root()
        && let Ok(program) = in_memory()
        && let Ok(spawner) = Spawner::start(Path::new(&format!("/proc/self/fd/{}", program.as_raw_fd())))
        // One of another making would not understand us, and whoever launches has to wait for the facts anyway.
        && spawner.facts().is_ok()
    {
        return Ok(spawner);
    }
    Spawner::start(own_program)
}

/// The program in a file of its own that nobody can change.
fn in_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create("skillbox-spawner", flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 there was no need to say that it is to be executed.
        Err(rustix::io::Errno::INVAL) => memfd_create("skillbox-spawner", flags)?,
        file => file?,
    };
    let mut rest = BYTES;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file)
}
