//! Loads a filter into the calling thread.
#![expect(unsafe_code, reason = "seccomp(2) takes a pointer to the program")]

use std::io;

use super::bpf::Instruction;

/// Installs the filter for this thread and its future children. `no_new_privs` must be set.
pub(crate) fn load(program: &[Instruction]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let header = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `Instruction` has the layout of `sock_filter`, the header describes exactly the slice, both outlive the
    // call, and the kernel only reads them.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const header) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
