//! The descriptors at the end: the command's three, and the reaper's own few.
#![expect(unsafe_code, reason = "descriptors are put in place by number")]

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};

use super::Child;

impl Child<'_> {
    /// Puts standard input, output and error in place and closes everything that is not needed any more, the sockets
    /// of other runs above all: their ends would not be noticed while a copy is open here.
    pub(super) fn arrange_descriptors(&mut self) -> io::Result<()> {
        if let Some(stdio) = self.belongings.stdio.take() {
            for (target, descriptor) in (0..).zip(stdio) {
                // Raw from here on: what is closed below is not closed again.
                let raw = descriptor.into_raw_fd();
                // SAFETY: numbers 0 to 2 are the spawner's empty device, which nothing uses.
                if unsafe { libc::dup2(raw, target) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        for mount in self.belongings.mounts.drain(..).flatten() {
            let _ = mount.into_raw_fd();
        }
        let _ = self.belongings.proc.take().map(IntoRawFd::into_raw_fd);
        let _ = self.belongings.spawner.take().map(IntoRawFd::into_raw_fd);
        let mut kept: Vec<RawFd> = self.belongings.doors.iter().map(AsRawFd::as_raw_fd).collect();
        kept.extend(self.belongings.answers.iter().map(AsRawFd::as_raw_fd));
        kept.extend(self.hunts.iter().map(super::reaper::Hunt::descriptor));
        kept.sort_unstable();
        close_all_but(&kept)
    }

    /// Closes what belongs to other runs while this child waits for its own.
    pub(super) fn let_go_of_others(&self, bell: &OwnedFd) -> io::Result<()> {
        let own = [&self.belongings.proc, &self.belongings.spawner];
        let mut kept: Vec<RawFd> = self.belongings.doors.iter().map(AsRawFd::as_raw_fd).collect();
        kept.extend(own.into_iter().flatten().map(AsRawFd::as_raw_fd));
        kept.push(bell.as_raw_fd());
        kept.sort_unstable();
        close_all_but(&kept)
    }
}

/// Closes every descriptor above 2 that is not in the sorted list.
fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    let mut from = 3;
    for descriptor in kept {
        close_range(from, descriptor - 1)?;
        from = descriptor + 1;
    }
    close_range(from, RawFd::MAX)
}

fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: the owners of these numbers gave them up, or belong to the spawner's copied state, which never runs here, or
    // to a pid 1 that shares them and uses none but the answers.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOSYS) {
        return Err(error);
    }
    let highest = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .maximum
        .unwrap_or(1 << 20);
    for descriptor in first..=last.min(i32::try_from(highest).unwrap_or(i32::MAX)) {
        // SAFETY: as above.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}
