//! Starts a program without copying the address space, as posix_spawn(3) does, and replaces this process by a program.
#![expect(
    unsafe_code,
    reason = "the new process shares our memory until it executes the program"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Enough for the few system calls of `child_main`, even in an unoptimised build.
const STACK_BYTES: usize = 64 << 10;

/// A program to start.
pub(crate) struct Program<'a> {
    /// The paths to try, in order. If a path does not exist or is not executable, the next one is tried.
    pub paths: &'a [CString],
    pub argv: &'a [CString],
    pub env: &'a [CString],
    /// The `tasks` files of the control groups that the new process joins before it executes the program.
    pub tasks_fds: &'a [BorrowedFd<'a>],
    /// Whether the new process exits without executing the program if it cannot join a control group.
    pub is_join_required: bool,
}

/// The process that [`spawn`] started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpawnedProcess {
    pub pid: i32,
    /// The errno if the program could not be executed. The process has then exited.
    pub exec_error: Option<i32>,
    /// The errno if a control group could not be joined.
    pub join_error: Option<i32>,
}

/// What the new process reads and writes while it shares our memory.
struct SharedState {
    paths: Vec<*const libc::c_char>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    tasks_fds: Vec<libc::c_int>,
    is_join_required: bool,
    exec_error: libc::c_int,
    join_error: libc::c_int,
}

/// Starts a program in a new process with an empty signal mask, in a session of its own.
pub(crate) fn spawn(program: &Program<'_>) -> io::Result<SpawnedProcess> {
    let mut shared = SharedState {
        paths: program.paths.iter().map(|path| path.as_ptr()).collect(),
        argv: null_terminated(program.argv),
        env: null_terminated(program.env),
        tasks_fds: program.tasks_fds.iter().map(AsRawFd::as_raw_fd).collect(),
        is_join_required: program.is_join_required,
        exec_error: 0,
        join_error: 0,
    };
    let mut stack = vec![0_u8; STACK_BYTES];
    let top = stack.as_mut_ptr_range().end;
    let top = top.wrapping_sub(top as usize % 16);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the new process runs `child_main` on its own stack, which is large enough, grows down from an aligned top
    // and lives until the call returns; with CLONE_VFORK the call returns only after the process has left our memory.
    // `child_main` makes system calls only: it allocates nothing, takes no lock and never returns into our frames.
    let pid = unsafe { libc::clone(child_main, top.cast(), flags, (&raw mut shared).cast()) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // The new process wrote to these fields, which the compiler does not know, hence the volatile reads.
    // SAFETY: both are live fields of a local value.
    let (exec_error, join_error) = unsafe {
        (
            (&raw const shared.exec_error).read_volatile(),
            (&raw const shared.join_error).read_volatile(),
        )
    };
    let non_zero = |errno: libc::c_int| (errno != 0).then_some(errno);
    Ok(SpawnedProcess {
        pid,
        exec_error: non_zero(exec_error),
        join_error: non_zero(join_error),
    })
}

/// The new process: joins the control groups and executes the program, or stores the error and exits.
extern "C" fn child_main(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passes a pointer to its own `SharedState`, waits until this process has left the memory and does
    // not touch it meanwhile. Everything below is system calls on values that `spawn` prepared.
    unsafe {
        let shared = &mut *shared.cast::<SharedState>();
        for descriptor in &shared.tasks_fds {
            if libc::write(*descriptor, c"0".as_ptr().cast(), 1) < 0 {
                shared.join_error = *libc::__errno_location();
                if shared.is_join_required {
                    libc::_exit(126);
                }
            }
        }
        shared.exec_error = if libc::setsid() < 0 {
            *libc::__errno_location()
        } else {
            exec_with_empty_signal_mask(&shared.paths, &shared.argv, &shared.env)
        };
        libc::_exit(127)
    }
}

/// Replaces this process by a program with an empty signal mask. Returns only on failure, with the errno.
pub(crate) fn exec(paths: &[CString], argv: &[CString], env: &[CString]) -> i32 {
    let paths: Vec<_> = paths.iter().map(|path| path.as_ptr()).collect();
    let (argv, env) = (null_terminated(argv), null_terminated(env));
    // SAFETY: both lists end with a null pointer, and everything they point to lives until the call returns.
    unsafe { exec_with_empty_signal_mask(&paths, &argv, &env) }
}

/// Empties the signal mask, because the program would inherit it, and executes the first path that can be executed.
/// Returns only on failure, with the errno.
///
/// # Safety
/// As for [`exec_first_executable`]. The caller must no longer rely on blocked signals.
unsafe fn exec_with_empty_signal_mask(
    paths: &[*const libc::c_char],
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> libc::c_int {
    // SAFETY: the signal set is valid when zeroed and outlives the calls; the caller guarantees the lists.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        if libc::sigemptyset(&raw mut none) < 0
            || libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) < 0
        {
            return *libc::__errno_location();
        }
        exec_first_executable(paths, argv, env)
    }
}

/// Executes the first path that can be executed. Returns only on failure, with the errno.
///
/// # Safety
/// The lists must contain pointers to live C strings, and `argv` and `env` must end with a null pointer.
unsafe fn exec_first_executable(
    paths: &[*const libc::c_char],
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> libc::c_int {
    let mut result = libc::ENOENT;
    for path in paths {
        // SAFETY: the caller guarantees the pointers and lists.
        let errno = unsafe {
            libc::execve(*path, argv.as_ptr(), env.as_ptr());
            *libc::__errno_location()
        };
        // As in execvp(3): the search continues, and EACCES takes precedence over a missing path.
        match errno {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => result = errno,
            _ => return errno,
        }
    }
    result
}

/// The null-terminated list that execve(2) expects.
fn null_terminated(list: &[CString]) -> Vec<*const libc::c_char> {
    list.iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

/// The paths at which to look for a program, by the `PATH` of its environment.
pub(crate) fn executable_candidates(name: &CStr, env: &[CString]) -> Vec<CString> {
    let bytes = name.to_bytes();
    if bytes.contains(&b'/') {
        return vec![name.to_owned()];
    }
    let path = env.iter().find_map(|pair| pair.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|byte| *byte == b':')
        .filter_map(|directory| {
            let directory = if directory.is_empty() { b"." } else { directory };
            CString::new([directory, b"/", bytes].concat()).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_used_as_it_is() {
        let env = [c"A=b".to_owned(), c"PATH=/x::/y".to_owned()];
        assert_eq!(
            executable_candidates(c"true", &env),
            [c"/x/true".to_owned(), c"./true".to_owned(), c"/y/true".to_owned()]
        );
        assert_eq!(executable_candidates(c"./true", &env), [c"./true".to_owned()]);
        assert_eq!(executable_candidates(c"true", &[]).len(), 3);
    }
}
