//! The runner: a small program embedded into skillbox. It is pid 1 of containers, and the spawner of sandboxes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use skillbox_sandbox::{Spawner, SpawnerError};

/// The bytes of the runner, built by `build.rs`. It is linked statically, so that it runs in any image.
pub(crate) const RUNNER_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/skillbox-runner"));

/// The path of the runner in every image.
pub(crate) const RUNNER_PATH: &str = "/skillbox-runner";

/// Starts a long-lived spawner.
///
/// Every sandbox starts as a clone of its spawner and releases the cloned memory during the run, so a small spawner
/// makes runs faster. If the runner cannot be started, `own_program` becomes the spawner; it must call
/// [`skillbox_sandbox::run_spawner_if_requested`]. For users other than root, `own_program` is always the spawner: a
/// host may restrict user namespaces by the path of a program (AppArmor), and a memfd has no path.
pub fn start_spawner(own_program: &Path) -> Result<Spawner, SpawnerError> {
    if rustix::process::geteuid().is_root()
        && let Ok(memfd) = write_runner_to_memfd()
        && let Ok(spawner) = Spawner::start(Path::new(&format!("/proc/self/fd/{}", memfd.as_raw_fd())))
        // A runner of another version does not understand the protocol. This check costs no time, because the launcher
        // waits for the facts in any case.
        && spawner.facts().is_ok()
    {
        return Ok(spawner);
    }
    Spawner::start(own_program)
}

/// Writes the runner into a sealed, immutable memfd.
fn write_runner_to_memfd() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create("skillbox-spawner", flags | MemfdFlags::EXEC) {
        // Linux before 6.3 does not know MFD_EXEC; its memfds are always executable.
        Err(rustix::io::Errno::INVAL) => memfd_create("skillbox-spawner", flags)?,
        file => file?,
    };
    let mut rest = RUNNER_BYTES;
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
